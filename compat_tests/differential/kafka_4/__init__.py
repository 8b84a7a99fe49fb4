"""Kafka 4.3.1 as the reference of scripts: how brokers start with its features, steps of scripts, what may differ."""
