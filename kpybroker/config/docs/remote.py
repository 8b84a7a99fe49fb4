"""One sentence on each tiered storage key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "remote.log.storage.system.enable": "Whether the broker uses tiered storage.",
    "remote.log.storage.manager.impl.prefix": "Prefix of keys passed to the remote storage manager.",
    "remote.log.metadata.manager.impl.prefix": "Prefix of keys passed to the remote metadata manager.",
    "remote.log.storage.manager.class.name": "Java class of the remote storage manager.",
    "remote.log.storage.manager.class.path": "Class path of that class.",
    "remote.log.metadata.manager.class.name": "Java class of the remote metadata manager.",
    "remote.log.metadata.manager.class.path": "Class path of that class.",
    "remote.log.metadata.manager.listener.name": "Listener by which the remote metadata manager reaches the cluster.",
    "remote.log.metadata.custom.metadata.max.bytes": (
        "Bytes of custom metadata that a remote storage manager may attach to a segment."
    ),
    "remote.log.index.file.cache.total.size.bytes": "Disk space for index files fetched from remote storage.",
    "remote.log.manager.thread.pool.size": "Threads for copying to, and cleaning, remote storage.",
    "remote.log.manager.copier.thread.pool.size": "Threads for copying to remote storage; -1 is the pool size.",
    "remote.log.manager.expiration.thread.pool.size": (
        "Threads for removing expired segments from remote storage; -1 is the pool size."
    ),
    "remote.log.manager.task.interval.ms": "How often the remote storage tasks run.",
    "remote.log.manager.task.retry.backoff.ms": "First wait after such a task failed.",
    "remote.log.manager.task.retry.backoff.max.ms": "Longest wait after such tasks failed.",
    "remote.log.manager.task.retry.jitter": "Random share of that wait.",
    "remote.log.reader.threads": "Threads that read from remote storage.",
    "remote.log.reader.max.pending.tasks": "How many reads from remote storage may wait.",
    "log.local.retention.ms": (
        "How long segments stay on local disk once they are in remote storage; -2 is log.retention.ms."
    ),
    "log.local.retention.bytes": (
        "How much of a partition stays on local disk once it is in remote storage; -2 is log.retention.bytes."
    ),
    "remote.log.manager.copy.max.bytes.per.second": "Bytes copied to remote storage a second.",
    "remote.log.manager.copy.quota.window.num": "Samples kept for that limit.",
    "remote.log.manager.copy.quota.window.size.seconds": "Length of a sample of that limit.",
    "remote.log.manager.fetch.max.bytes.per.second": "Bytes read from remote storage a second.",
    "remote.log.manager.fetch.quota.window.num": "Samples kept for that limit.",
    "remote.log.manager.fetch.quota.window.size.seconds": "Length of a sample of that limit.",
    "remote.list.offsets.request.timeout.ms": "How long ListOffsets waits for remote storage. Of Kafka 4.",
    "remote.log.index.file.cache.ttl.ms": (
        "How long an index file fetched from remote storage is kept unused. Of Kafka 4."
    ),
    "remote.log.manager.follower.thread.pool.size": (
        "Threads that work for followers of topics in remote storage. Of Kafka 4."
    ),
    "follower.fetch.last.tiered.offset.enable": (
        "Whether an empty follower begins behind what is in remote storage. Of Kafka 4."
    ),
    "remote.fetch.max.wait.ms": "How long a fetch may wait for remote storage.",
}
# fmt: on
