"""Configurations of connectors that several tests use; keys have `_` for `.`."""

from __future__ import annotations

from compat_tests.connect.shop import TABLE
from compat_tests.support.machine.postgres import DATABASE, USER, Postgres

POSTGRES_SOURCE = "io.debezium.connector.postgresql.PostgresConnector"
JDBC_SINK = "io.debezium.connector.jdbc.JdbcSinkConnector"
JSON = "org.apache.kafka.connect.json.JsonConverter"
TOPIC = f"shop.public.{TABLE}"


def converters(java_class: str, **settings: str) -> dict[str, str]:
    """One converter for keys and values, with its settings."""
    found = {}
    for part in ("key", "value"):
        found[f"{part}_converter"] = java_class
        found |= {f"{part}_converter_{key}": value for key, value in settings.items()}
    return found


def change_data(postgres: Postgres, **settings: str) -> dict[str, str]:
    """Debezium's source of the shop's table."""
    return {
        "database_hostname": "127.0.0.1",
        "database_port": str(postgres.port),
        "database_user": USER,
        "database_password": "none",
        "database_dbname": DATABASE,
        "topic_prefix": "shop",
        "plugin_name": "pgoutput",
        "publication_autocreate_mode": "filtered",
        "table_include_list": f"public.{TABLE}",
        "decimal_handling_mode": "string",
        "poll_interval_ms": "50",
        "status_update_interval_ms": "500",
        # how long a connection that broke is waited for
        "retriable_restart_connector_wait_ms": "500",
        "slot_retry_delay_ms": "500",
        "slot_max_retries": "120",
        **settings,
    }


def table_sink(postgres: Postgres, table: str, **settings: str) -> dict[str, str]:
    """Debezium's sink into a table that it makes."""
    return {
        "topics": TOPIC,
        "connection_url": postgres.jdbc_url,
        "connection_username": USER,
        "connection_password": "none",
        "insert_mode": "upsert",
        "delete_enabled": "true",
        "primary_key_mode": "record_key",
        "schema_evolution": "basic",
        "collection_name_format": table,
        "consumer_override_auto_offset_reset": "earliest",
        **settings,
    }
