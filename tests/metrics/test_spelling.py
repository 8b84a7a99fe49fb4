"""The three spellings, on names that dashboards ask for."""

from __future__ import annotations

import pytest

from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.spelling import Spelling, spell
from kpybroker.metrics.tables import controller, log, network, replication, requests, topics

SPELLED = [
    (
        topics.BYTES_IN,
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_server_brokertopicmetrics_bytesinpersec_total",
        "kafka_server_brokertopicmetrics_bytesinpersec",
    ),
    (
        replication.UNDER_REPLICATED,
        *["kafka_server_replicamanager_underreplicatedpartitions"] * 3,
    ),
    (
        network.HANDLER_IDLE,
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
    ),
    (
        network.NETWORK_IDLE,
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
    ),
    (
        network.CONNECTION_COUNT,
        "kafka_server_socket_server_metrics_connection_count",
        "kafka_server_socket_server_metrics_connection_count",
        "kafka_server_socketservermetrics_connection_count",
    ),
    (
        network.CONNECTIONS,
        "kafka_server_socket_server_metrics_connections_software",
        "kafka_server_socket_server_metrics_connections",
        "kafka_server_socketservermetrics_connections",
    ),
    (
        network.ACCEPTOR_BLOCKED,
        "kafka_network_acceptor_acceptorblockedpercent_count",
        "kafka_network_acceptor_acceptorblockedpercent_total",
        "kafka_network_acceptor_acceptorblockedpercent",
    ),
    (requests.TOTAL_TIME, *["kafka_network_requestmetrics_totaltimems"] * 3),
    (
        controller.UNCLEAN_ELECTIONS,
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "kafka_controller_controllerstats_uncleanleaderelectionspersec_total",
        "kafka_controller_controllerstats_uncleanleaderelectionspersec",
    ),
    (log.MAX_DIRTY, *["kafka_log_logcleanermanager_max_dirty_percent"] * 3),
]


@pytest.mark.parametrize(("family", "jmx_exporter", "metrics_reporter", "kafka_overview"), SPELLED)
def test_names(family: Family, jmx_exporter: str, metrics_reporter: str, kafka_overview: str) -> None:
    assert spell(family, Spelling.JMX_EXPORTER).name == jmx_exporter
    assert spell(family, Spelling.METRICS_REPORTER).name == metrics_reporter
    assert spell(family, Spelling.KAFKA_OVERVIEW).name == kafka_overview


def test_types() -> None:
    types = {spelling: spell(network.HANDLER_IDLE, spelling).type for spelling in Spelling}
    assert types == {
        Spelling.JMX_EXPORTER: "gauge",
        Spelling.METRICS_REPORTER: "counter",
        Spelling.KAFKA_OVERVIEW: "gauge",
    }
    counters = {spelling: spell(topics.BYTES_IN, spelling).type for spelling in Spelling}
    assert counters[Spelling.JMX_EXPORTER] == counters[Spelling.METRICS_REPORTER] == "counter"
    assert counters[Spelling.KAFKA_OVERVIEW] == "untyped"


def test_labels_are_lower_case_where_the_rules_of_the_exporter_say_so() -> None:
    labels = {spelling: spell(network.CONNECTIONS, spelling).labels for spelling in Spelling}
    camel = ("clientSoftwareName", "clientSoftwareVersion", "listener", "networkProcessor")
    assert labels[Spelling.JMX_EXPORTER] == labels[Spelling.METRICS_REPORTER] == camel
    assert labels[Spelling.KAFKA_OVERVIEW] == (
        "client_software_name",
        "client_software_version",
        "listener",
        "network_processor",
    )


def test_quantiles_are_written_as_each_source_writes_them() -> None:
    assert spell(requests.TOTAL_TIME, Spelling.JMX_EXPORTER).quantiles[0] == "0.50"
    assert spell(requests.TOTAL_TIME, Spelling.METRICS_REPORTER).quantiles[0] == "0.5"
    assert spell(requests.TOTAL_TIME, Spelling.KAFKA_OVERVIEW).quantiles[0] == "0.50"
