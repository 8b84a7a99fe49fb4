"""What Kafka or a dashboard has and this broker has not, with the reason. `*` is any rest of a name."""

from __future__ import annotations

from typing import Final

NAMES: Final[dict[str, str]] = {
    "jvm_*": "There is no JVM; `process_*` has memory, processor time and files.",
    "container_*": "The container runtime has them (cAdvisor), for Kafka as for this broker.",
    "kafka_consumergroupzookeeper_lag_zookeeper": "No consumer keeps offsets in ZooKeeper any more.",
}
"""Prometheus names that dashboards ask for."""

MBEANS: Final[dict[str, str]] = {
    "kafka.network:type=RequestChannel": "No queue lies between reading and handling: RequestQueueTimeMs has the wait.",
    "kafka.network:type=SocketServer,name=ControlPlane*": "control.plane.listener.name opens no listener of its own.",
    "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount": "A warning in the log says it.",
    "kafka.network:type=RequestMetrics,name=TemporaryMemoryBytes": "Conversions work on slices of 1 MB.",
    "kafka.network:type=RequestMetrics,name=MessageConversionsTimeMs": "It is a part of LocalTimeMs.",
    "kafka.server:type=BrokerTopicMetrics,name=InvalidMagicNumberRecordsPerSec": "Errors of Produce: INVALID_RECORD.",
    "kafka.server:type=BrokerTopicMetrics,name=InvalidOffsetOrSequenceRecordsPerSec": "Errors of Produce, by code.",
    "kafka.server:type=BrokerTopicMetrics,name=NoKeyCompactedTopicRecordsPerSec": "Errors of Produce: INVALID_RECORD.",
    "kafka.server:type=BrokerTopicMetrics,name=Reassignment*": "They are a part of ReplicationBytes*.",
    "*,name=DeadThreadCount": "A cleaner or a fetcher that fails is started again, and the log says why.",
    "kafka.server:type=DelayedFetchMetrics": "RemoteTimeMs of Fetch shows the waits.",
    "kafka.server:type=*-metrics,BrokerId=*": "Metrics of Java's network client, which is not here.",
    "kafka.server:type=Fetch|Produce|Request|ControllerMutation": "Throttled channels; see ThrottleTimeMs.",
    "kafka.server:type=ReplicaAlterLogDirsManager": "DescribeLogDirs has the lag of moves.",
    "kafka.server:type=MetadataLoader": "It is of KRaft.",
    "kafka.controller:type=KafkaController,name=ZkMigrationState": "It is of KRaft.",
    "kafka.coordinator.transaction:type=TransactionMarkerChannelManager": "Markers that wait are in the broker's log.",
    "kafka.utils:type=Throttler": "The cleaner is a process of its own.",
}
"""MBeans of Kafka 3.9."""
