"""Traffic by topic. Kafka counts per partition of a request, and for the broker as a whole (without `topic`)."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

TABLE: Final = Table("kafka.server", "BrokerTopicMetrics", ("topic",))

BYTES_IN: Final = TABLE.meter(
    "BytesInPerSec", "bytes", "Bytes of batches appended by this broker as leader, as they were sent; duplicates too."
)
BYTES_OUT: Final = TABLE.meter("BytesOutPerSec", "bytes", "Bytes of batches sent to consumers.")
MESSAGES_IN: Final = TABLE.meter("MessagesInPerSec", "records", "Records appended by this broker as leader.")
PRODUCE_REQUESTS: Final = TABLE.meter(
    "TotalProduceRequestsPerSec", "partitions", "Appends asked for, one for each partition of a request."
)
FETCH_REQUESTS: Final = TABLE.meter(
    "TotalFetchRequestsPerSec",
    "partitions",
    "Partitions read for fetches. Partitions of a session without news are not read here, and not counted.",
)
FAILED_PRODUCE_REQUESTS: Final = TABLE.meter(
    "FailedProduceRequestsPerSec",
    "partitions",
    "Appends that failed for another reason than a wrong leader, a size, a checksum or a disk.",
    "It grows: clients send what is invalid, or fewer replicas are in sync than min.insync.replicas asks for.",
)
FAILED_FETCH_REQUESTS: Final = TABLE.meter(
    "FailedFetchRequestsPerSec", "partitions", "Reads that failed unexpectedly.", "It grows: see the broker's log."
)
BYTES_REJECTED: Final = TABLE.meter(
    "BytesRejectedPerSec",
    "bytes",
    "Bytes of batches larger than max.message.bytes.",
    "It grows: a producer's max.request.size is above the topic's limit.",
)
PRODUCE_CONVERSIONS: Final = TABLE.meter(
    "ProduceMessageConversionsPerSec",
    "requests",
    "Appends whose messages are in an old format and are converted.",
    "It grows fast: old producers cost the broker time.",
)
FETCH_CONVERSIONS: Final = TABLE.meter(
    "FetchMessageConversionsPerSec",
    "requests",
    "Reads that are converted for clients that know only an old format.",
    "It grows fast: old consumers cost the broker time and memory.",
)
INVALID_CRC: Final = TABLE.meter(
    "InvalidMessageCrcRecordsPerSec",
    "requests",
    "Appends refused because a checksum does not match; of the broker only.",
    "It grows: a network or a client damages batches.",
)
REPLICATION_BYTES_IN: Final = TABLE.meter(
    "ReplicationBytesInPerSec", "bytes", "Bytes appended by this broker as follower; of the broker only."
)
REPLICATION_BYTES_OUT: Final = TABLE.meter(
    "ReplicationBytesOutPerSec", "bytes", "Bytes sent to followers; of the broker only."
)

FAMILIES: Final = tuple(TABLE)
