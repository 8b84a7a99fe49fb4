"""Feeding a warehouse: facts by hour into Parquet and PostgreSQL."""
