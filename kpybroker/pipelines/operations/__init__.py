"""Operational metrics: samples of machines and services to values per window, rates, and alerts."""
