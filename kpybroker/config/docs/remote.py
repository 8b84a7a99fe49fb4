"""What the remote keys are for, in our words. Loaded only when somebody asks for documentation."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "remote.log.storage.system.enable": "Whether the broker has tiered storage at all.",
    "remote.log.storage.manager.impl.prefix": "Prefix of keys handed to the remote storage manager.",
    "remote.log.metadata.manager.impl.prefix": "Prefix of keys handed to the remote metadata manager.",
    "remote.log.storage.manager.class.name": "Java class of the remote storage manager.",
    "remote.log.storage.manager.class.path": "Where that class is found.",
    "remote.log.metadata.manager.class.name": "Java class of the remote metadata manager.",
    "remote.log.metadata.manager.class.path": "Where that class is found.",
    "remote.log.metadata.manager.listener.name": "Listener by which the remote metadata manager reaches the cluster.",
    "remote.log.metadata.custom.metadata.max.bytes": (
        "How much metadata of its own a remote storage manager may attach to a segment."
    ),
    "remote.log.index.file.cache.total.size.bytes": "Disk space for index files brought back from remote storage.",
    "remote.log.manager.thread.pool.size": "Threads for copying to, and cleaning, remote storage.",
    "remote.log.manager.copier.thread.pool.size": "Threads for copying to remote storage; -1 takes the pool size.",
    "remote.log.manager.expiration.thread.pool.size": (
        "Threads for removing expired segments from remote storage; -1 takes the pool size."
    ),
    "remote.log.manager.task.interval.ms": "How often the work for remote storage runs.",
    "remote.log.manager.task.retry.backoff.ms": "First rest after a failure of that work.",
    "remote.log.manager.task.retry.backoff.max.ms": "Longest rest after failures of that work.",
    "remote.log.manager.task.retry.jitter": "Share of that rest which is random.",
    "remote.log.reader.threads": "Threads that read from remote storage.",
    "remote.log.reader.max.pending.tasks": "How many reads from remote storage may wait.",
    "log.local.retention.ms": (
        "How long segments stay on local disk once they are in remote storage; -2 takes log.retention.ms."
    ),
    "log.local.retention.bytes": (
        "How much of a partition stays on local disk once it is in remote storage; -2 takes log.retention.bytes."
    ),
    "remote.log.manager.copy.max.bytes.per.second": "Bytes copied to remote storage a second.",
    "remote.log.manager.copy.quota.window.num": "Samples kept for that limit.",
    "remote.log.manager.copy.quota.window.size.seconds": "Length of a sample of that limit.",
    "remote.log.manager.fetch.max.bytes.per.second": "Bytes read from remote storage a second.",
    "remote.log.manager.fetch.quota.window.num": "Samples kept for that limit.",
    "remote.log.manager.fetch.quota.window.size.seconds": "Length of a sample of that limit.",
    "remote.fetch.max.wait.ms": "How long a fetch may wait for remote storage.",
}
# fmt: on
