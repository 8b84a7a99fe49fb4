"""Every name that well-known dashboards ask for is on the page of a running broker, in the spelling they ask for.

The lists are of the dashboards of Strimzi (strimzi-kafka.json and its alerts, for the JMX exporter and for the Metrics
Reporter), of Kafka Overview (Grafana 721, confluentinc/jmx-monitoring-stacks), and of kafka_exporter.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import trio
from prometheus_client import Metric

from kpybroker.metrics.spelling import Spelling, spell
from kpybroker.metrics.tables.requests import TOTAL_TIME
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from tests.broker.metrics.test_server import PORT, scrape
from tests.broker.replication.test_traffic import fetch, produce
from tests.metrics.absent import NAMES as ABSENT
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch

_TOPICS = "kafka_server_brokertopicmetrics"
_STRIMZI_ALIKE = [
    *(f"kafka_server_replicamanager_{name}" for name in ("partitioncount", "leadercount", "underreplicatedpartitions")),
    "kafka_server_replicamanager_underminisrpartitioncount",
    *(f"kafka_cluster_partition_{name}" for name in ("underminisr", "atminisr")),
    *(f"kafka_controller_kafkacontroller_{name}count" for name in ("activecontroller", "offlinepartitions")),
    *("kafka_log_log_size", "kafka_log_logmanager_offlinelogdirectorycount"),
    "kafka_server_socket_server_metrics_connection_count",
    *(f"kafka_server_kafkaserver_linux_disk_{name}_bytes" for name in ("read", "write")),
    *("jvm_memory_used_bytes", "jvm_gc_collection_seconds_sum", "jvm_gc_collection_seconds_count"),
    *("jvm_threads_current", "process_open_fds"),
    *("container_cpu_usage_seconds_total", "container_memory_usage_bytes"),
]

STRIMZI = [
    *_STRIMZI_ALIKE,
    *(f"{_TOPICS}_{name}_total" for name in ("messagesin", "bytesin", "bytesout")),
    *(f"{_TOPICS}_{name}requests_total" for name in ("totalproduce", "totalfetch", "failedproduce", "failedfetch")),
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
]
METRICS_REPORTER = [
    *_STRIMZI_ALIKE,
    *(f"{_TOPICS}_{name}persec_total" for name in ("messagesin", "bytesin", "bytesout")),
    *(
        f"{_TOPICS}_{name}requestspersec_total"
        for name in ("totalproduce", "totalfetch", "failedproduce", "failedfetch")
    ),
    "kafka_controller_controllerstats_uncleanleaderelectionspersec_total",
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
    "kafka_cluster_partition_replicascount",
]
_TIMES = ("requestqueue", "local", "remote", "responsequeue", "responsesend", "total")
_GROUPS = ("", "stable", "preparingrebalance", "completingrebalance", "empty", "dead")
KAFKA_OVERVIEW = [
    *(f"{_TOPICS}_{name}persec" for name in ("messagesin", "bytesin", "bytesout")),
    *(f"{_TOPICS}_{name}messageconversionspersec" for name in ("produce", "fetch")),
    *("kafka_network_requestmetrics_requestspersec", "kafka_network_requestmetrics_errorspersec"),
    *(f"kafka_network_requestmetrics_{name}timems" for name in _TIMES),
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_network_acceptor_acceptorblockedpercent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
    *(f"kafka_server_replicamanager_{name}" for name in ("leadercount", "partitioncount", "underreplicatedpartitions")),
    *(f"kafka_server_replicamanager_isr{name}persec" for name in ("shrinks", "expands")),
    *(f"kafka_controller_kafkacontroller_{name}count" for name in ("activecontroller", "offlinepartitions")),
    *(f"kafka_controller_kafkacontroller_{name}count" for name in ("globaltopic", "globalpartition")),
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec",
    *(f"kafka_coordinator_group_groupmetadatamanager_numgroups{state}" for state in _GROUPS),
    *(
        f"kafka_server_socketservermetrics_connection{name}"
        for name in ("s", "_count", "_creation_rate", "_close_rate")
    ),
    *(f"kafka_log_log_{name}" for name in ("size", "logstartoffset", "logendoffset")),
    *(
        f"kafka_server_sessionexpirelistener_zookeeper{name}persec"
        for name in ("syncconnects", "expires", "disconnects", "authfailures")
    ),
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
    *("jvm_memory_bytes_used", "jvm_memory_bytes_max", "jvm_gc_collection_seconds_sum", "process_cpu_seconds_total"),
]
KAFKA_EXPORTER = [
    *("kafka_brokers", "kafka_broker_info", "kafka_topic_partitions"),
    *(f"kafka_topic_partition_{name}" for name in ("current_offset", "oldest_offset", "leader", "replicas")),
    *(f"kafka_topic_partition_{name}" for name in ("in_sync_replica", "leader_is_preferred")),
    "kafka_topic_partition_under_replicated_partition",
    *(f"kafka_consumergroup_{name}" for name in ("current_offset", "lag", "current_offset_sum", "lag_sum", "members")),
    "kafka_consumergroupzookeeper_lag_zookeeper",
]

LISTS = [
    (Spelling.JMX_EXPORTER, STRIMZI + KAFKA_EXPORTER),
    (Spelling.METRICS_REPORTER, METRICS_REPORTER + KAFKA_EXPORTER),
    (Spelling.KAFKA_OVERVIEW, KAFKA_OVERVIEW + KAFKA_EXPORTER),
]


def is_absent(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in ABSENT)


def samples(families: dict[str, Metric]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for family in families.values():
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


async def test_every_name_is_there(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port=PORT) as broker:
        await ask(broker, produce("t", batch(b"one")), 9)
        await ask(broker, fetch("t"), 12)
        while (await ask(broker, FindCoordinatorRequest(key="g"), 2)).error_code:
            pass
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])]
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
        while (await ask(broker, commit, 7)).topics[0].partitions[0].error_code:
            pass
        await broker.transport.connect("127.0.0.1", 9092, 1)
        while not broker.server.connection_count:
            await trio.lowlevel.checkpoint()
        for spelling, names in LISTS:
            found = samples(await scrape(broker, spelling.value))
            missing = {name for name in names if name not in found and not is_absent(name)}
            assert not missing, spelling
        assert {"consumergroup": "g", "topic": "t", "partition": "0"} in found["kafka_consumergroup_lag"]


@pytest.mark.parametrize("pattern", ABSENT)
def test_what_is_absent_is_asked_for_by_a_dashboard_and_is_not_here(pattern: str) -> None:
    asked = {name for _, names in LISTS for name in names}
    assert any(fnmatchcase(name, pattern) for name in asked)


def test_quantiles_are_what_the_overview_asks_for() -> None:
    asked = spell(TOTAL_TIME, Spelling.KAFKA_OVERVIEW).quantiles
    assert asked == ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
