"""The pytest plugin: fixtures for a broker, its topics, clients, faults and clock. docs/guides/testing.md shows them.

pytest imports this in every run, also of projects that use none of it: so nothing is imported here but pytest, and
what a fixture needs is imported when a test asks for it.

What never lives here: how a broker is started and reached (`kpybroker.testing`). One way in: the entry point of
`pytest11`.
"""

from __future__ import annotations

from kpybroker.pytest_plugin.fixtures import (
    group_id,
    kafka_admin,
    kafka_broker,
    kafka_broker_factory,
    kafka_clock,
    kafka_cluster,
    kafka_consumer,
    kafka_faults,
    kafka_producer,
    kafka_requests,
    kafka_schema_registry,
    kafka_share_consumer,
    kafka_topic,
    kpybroker,
)
from kpybroker.pytest_plugin.options import pytest_addoption, pytest_configure, pytest_report_header
from kpybroker.pytest_plugin.protocols import kafka_group_protocol, pytest_generate_tests, pytest_runtest_protocol
from kpybroker.pytest_plugin.real import pytest_sessionstart, pytest_terminal_summary
from kpybroker.pytest_plugin.report import pytest_runtest_makereport, pytest_runtest_setup
from kpybroker.pytest_plugin.unused_faults import pytest_fixture_setup, pytest_runtest_call, pytest_runtest_teardown

__all__ = [
    "group_id",
    "kafka_admin",
    "kafka_broker",
    "kafka_broker_factory",
    "kafka_clock",
    "kafka_cluster",
    "kafka_consumer",
    "kafka_faults",
    "kafka_group_protocol",
    "kafka_producer",
    "kafka_requests",
    "kafka_schema_registry",
    "kafka_share_consumer",
    "kafka_topic",
    "kpybroker",
    "pytest_addoption",
    "pytest_configure",
    "pytest_fixture_setup",
    "pytest_generate_tests",
    "pytest_report_header",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_sessionstart",
    "pytest_terminal_summary",
]
