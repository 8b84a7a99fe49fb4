"""What Kafka or a dashboard has and this broker has not, and what it counts differently, with the reason.

`*` is any text, `|` separates alternatives, and `,*` at the end of an MBean stands for any further keys.
`compat_tests/metrics` holds the lists of MBeans against Kafka 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

NAMES: Final[dict[str, str]] = {
    "jvm_*": "There is no JVM; `process_*` has memory, processor time and files.",
    "container_*": "The container runtime has them (cAdvisor), for Kafka as for this broker.",
    "kafka_consumergroupzookeeper_lag_zookeeper": "No consumer keeps offsets in ZooKeeper any more.",
}
"""Prometheus names that dashboards ask for."""

_LOCAL: Final = "WriteTxnMarkers|AllocateProducerIds|LeaderAndIsr|StopReplica|UpdateMetadata|AlterPartition"
_TOPICS: Final = "kafka.server:type=BrokerTopicMetrics"

MBEANS: Final[dict[str, str]] = {
    "kafka.network:type=RequestChannel,*": "There is no queue between reading and handling: RequestQueueTimeMs.",
    "kafka.network:type=SocketServer,name=ControlPlane*": "control.plane.listener.name opens no listener of its own.",
    "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount": "A warning in the log says it.",
    "kafka.network:type=RequestMetrics,name=TemporaryMemoryBytes,*": "Conversions work on slices of 1 MB.",
    "kafka.network:type=RequestMetrics,name=MessageConversionsTimeMs,*": "It is a part of LocalTimeMs.",
    "kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,*": "RequestsPerSec has the version.",
    f"kafka.network:type=RequestMetrics,request={_LOCAL}|AddPartitionsToTxnVerification,*": (
        "A broker asks itself without a request. Those of other brokers are here; verifications as AddPartitionsToTxn."
    ),
    f"{_TOPICS},name=InvalidMagicNumberRecordsPerSec": "Errors of Produce: INVALID_RECORD.",
    f"{_TOPICS},name=InvalidOffsetOrSequenceRecordsPerSec": "Errors of Produce, by code.",
    f"{_TOPICS},name=NoKeyCompactedTopicRecordsPerSec": "Errors of Produce: INVALID_RECORD.",
    f"{_TOPICS},name=Reassignment*": "They are a part of ReplicationBytes*.",
    "*:name=DeadThreadCount,*": "A cleaner or a fetcher that fails is started again, and the log says why.",
    "kafka.server:type=DelayedFetchMetrics,*": "RemoteTimeMs of Fetch shows the waits.",
    "kafka.server:type=DelayedOperationPurgatory,delayedOperation=AlterAcls|DeleteRecords|ElectLeader|topic,*": (
        "RemoteTimeMs of these requests shows the waits."
    ),
    "kafka.server:type=DelayedOperationPurgatory,delayedOperation=RemoteFetch,*": "It is of tiered storage.",
    "kafka.server:type=*-channel-metrics|alter-partition-metrics|forwarding-metrics|replica-fetcher-metrics,*": (
        "Metrics of Java's network client, which is not here."
    ),
    "kafka.server:type=Fetch|Produce|Request|ControllerMutation,*": "Throttled channels; see ThrottleTimeMs.",
    "kafka.server:type=socket-server-metrics": "MemoryPoolAvailable shows when reading pauses.",
    "kafka.server:type=socket-server-metrics,listener=*": "Rates of accepting: connection-creation-rate.",
    "kafka.server:type=socket-server-metrics,clientSoftwareName=*,*": "It is here while such a client is connected.",
    "kafka.server:type=ReplicaAlterLogDirsManager,*": "DescribeLogDirs has the lag of moves.",
    "kafka.server:type=ReplicaFetcherManager,name=FailedPartitionsCount|MinFetchRate,*": (
        "A partition whose fetch fails is retried, and the log says why; MaxLag shows it."
    ),
    "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount": (
        "LastStableOffsetLag shows them; `kafka-transactions find-hanging` lists them."
    ),
    "kafka.server:type=SessionExpireListener,name=SessionState": "It is a text; BrokerState is 1 without a session.",
    "kafka.server:type=SessionExpireListener,name=ZooKeeperReadOnlyConnectsPerSec|ZooKeeperSaslAuthenticationsPerSec": (
        "Read-only servers of ZooKeeper are not used; logins that fail are counted."
    ),
    "kafka.server:type=AddPartitionsToTxnManager,*": "AddPartitionsToTxn at the coordinator's broker.",
    "kafka.server:type=KafkaServer,name=ClusterId": "It is a text, as `kafka-cluster cluster-id` says it.",
    "kafka.server:type=KafkaServer,name=yammer-metrics-count": "A count of Java's objects.",
    "kafka.server:type=app-info|kafka-metrics-count,*": "Version and time of the start: `process_*` and ApiVersions.",
    "kafka.server:type=transaction-coordinator-metrics,*": "The log says how long loading took.",
    "kafka.server:type=MetadataLoader,*": "It is of KRaft.",
    "kafka.controller:type=KafkaController,name=ZkMigrationState|FencedBrokerCount": "They are of KRaft.",
    "kafka.controller:type=KafkaController,name=ControllerState": "The timers of ControllerStats count each event.",
    "kafka.controller:type=ControllerStats,name=ControllerShutdownRateAndTimeMs": "It is no event here.",
    "kafka.controller:type=ControllerChannelManager,name=RequestRateAndQueueTimeMs,*": "QueueSize shows what waits.",
    "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,*": "The broker's log has markers that wait.",
    "kafka.log:type=LogCleaner,name=max-compaction-delay-secs": "max-dirty-percent shows what waits.",
    "kafka.utils:type=Throttler,*": "The cleaner is a process of its own.",
}
"""MBeans of Kafka 3.9."""

GROUPS: Final[dict[str, str]] = {
    "event-queue-*": "There is no queue: a request is handled when it is read. RequestQueueTimeMs.",
    "event-processing-time-ms-*": "LocalTimeMs of the requests of groups.",
    "event-purgatory-time-ms-*": "RemoteTimeMs of the same: the wait for the replicas.",
    "thread-idle-ratio-avg": "The event loop is the one thread: RequestHandlerAvgIdlePercent.",
    "batch-linger-time-ms-*|batch-buffer-cache-*": "Records are appended at once: no buffer waits for more of them.",
    "batch-flush-*": "LocalTimeMs of the requests has the time of an append; writes are counted by topic.",
    "background-*": "Assignors and patterns run in slices on the event loop. A slice is a few milliseconds at most.",
}
"""Attributes of `kafka.server:type=group-coordinator-metrics` in Kafka 4.3.1; those of Kafka 3.9 are all here."""

SHARES: Final[dict[str, str]] = {
    "kafka.server:type=SharePartitionMetrics,name=InFlightBatchMessageCount,*": (
        "InFlightMessageCount and InFlightBatchCount show how large batches are. A distribution of each share "
        "partition would cost more memory than all else that is kept of it."
    ),
    "kafka.server:type=SharePartitionMetrics,name=FetchLockTimeMs|FetchLockRatio,*": (
        "A fetch has a share partition to itself for a slice of the event loop: LocalTimeMs of ShareFetch."
    ),
}
"""MBeans of share groups in Kafka 4.3.1. Attributes of `share-coordinator-metrics` are absent as those in `GROUPS`."""

ATTRIBUTES: Final[dict[str, str]] = {
    "EventType|RateUnit|LatencyUnit": "Texts that never change.",
    "StdDev": "Of distributions; quantiles are there.",
    "MeanRate|OneMinuteRate|FiveMinuteRate|FifteenMinuteRate": (
        "Of timers: the rate of `Count` says it. Of RequestHandlerAvgIdlePercent, which has OneMinuteRate."
    ),
    "*-rate|*-total|*-count|*-ratio|*-avg|*-max|*-time|*-age-ms|iotime-total": (
        "Of `socket-server-metrics`, other than those of connections: metrics of Java's selector."
    ),
}
"""Attributes of MBeans that are here."""

COUNTS: Final[dict[str, str]] = {
    "kafka.network:type=RequestMetrics,name=*TimeMs|RequestBytes,*": (
        "Sampled: the count may be up to 31 requests of a version behind until the next one is timed. An API has them "
        "from its first request on; Kafka has them at 0 before."
    ),
    "kafka.network:type=RequestMetrics,request=AddPartitionsToTxn|ApiVersions,*": (
        "A broker does not verify its own transactions by a request, and opens no connection to itself."
    ),
    "kafka.server:type=group-coordinator-metrics": (
        "`offset-commit-count` counts offsets, as in Kafka 4. Kafka 3.9 counts requests, of however many offsets."
    ),
    "kafka.log:type=LogFlushStats,*": "Segments that roll shortly after each other are flushed together.",
    f"{_TOPICS},name=BytesOutPerSec,*": (
        "Of a fetch that is converted for an old client, the bytes that are stored; Kafka counts the converted ones if "
        "they are more. Kafka has the MBean of a topic also after a fetch of one that does not exist."
    ),
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,*": "Kafka removes what is complete later.",
    "kafka.server:type=ZooKeeperClientMetrics,*": "Requests to ZooKeeper are not the same.",
}
"""Counts that differ from Kafka's after the same work."""


def reason(domain: str, properties: Mapping[str, str], listed: Mapping[str, str] = MBEANS) -> str | None:
    """Why an MBean is in a list; None if it is not."""
    return next((text for pattern, text in listed.items() if _matches(pattern, domain, properties)), None)


def _matches(pattern: str, domain: str, properties: Mapping[str, str]) -> bool:
    wanted_domain, _, rest = pattern.partition(":")
    is_open = rest.endswith(",*")
    wanted = dict(part.split("=", 1) for part in rest.removesuffix(",*").split(","))
    if not fnmatchcase(domain, wanted_domain) or not wanted.keys() <= properties.keys():
        return False
    if not is_open and wanted.keys() != properties.keys():
        return False
    return all(
        any(fnmatchcase(properties[key], one) for one in alternatives.split("|"))
        for key, alternatives in wanted.items()
    )
