"""The log directories of a broker: which are live, which failed, and what their `meta.properties` agree on.

They are created and locked together: one that fails is offline from the start, and without any the start fails. The
manager knows which logs a directory has, and closes them when it fails.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from kpybroker.storage.directories.log_dir import LogDirectory, absolute
from kpybroker.storage.disk.checkpoints import MetaProperties
from kpybroker.storage.disk.errors import (
    CorruptCheckpointError,
    InconsistentBrokerIdError,
    InconsistentClusterIdError,
    InconsistentMetadataError,
    LogDirError,
    failing_takes_offline,
)
from kpybroker.storage.disk.files import DiskUsage, Files
from kpybroker.storage.disk.names import META_PROPERTIES
from kpybroker.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafka.log.LogManager")


class LogDirs:
    """`configured`: all paths, absolute. `live`: those in service. `offline`: the others, with the cause."""

    def __init__(self, files: Files, paths: Sequence[str]) -> None:
        """Raises LogDirLockedError, InconsistentMetadataError, and where no directory is left LogDirError, or
        CorruptCheckpointError if no `meta.properties` can be read.
        """
        self._files = files
        self.configured = [absolute(files, path) for path in paths]
        self.live: dict[str, LogDirectory] = {}
        self.offline: dict[str, str] = {}
        self.cordoned: frozenset[str] = frozenset()
        """Those that take no new logs (KIP-1066)."""
        try:
            self._open()
            self.meta = self._common_meta()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        real_paths: set[str] = set()
        unreadable: list[CorruptCheckpointError] = []
        for path in self.configured:
            try:
                directory = LogDirectory(self._files, path)
            except OSError as error:
                self._note_offline(path, f"Failed to create or validate data directory {path}: {error}")
                continue
            except CorruptCheckpointError as error:
                unreadable.append(error)
                self._note_offline(path, f"Failed to load {path} during broker startup: {error}")
                continue
            self.live[path] = directory
            real = self._files.real_path(path)
            if real in real_paths:
                raise InconsistentMetadataError(f"Duplicate log directory found: {', '.join(self.configured)}")
            real_paths.add(real)
        if not self.live and len(unreadable) == len(self.configured):
            raise unreadable[0]
        if not self.live:
            causes = "; ".join(self.offline.values())
            raise LogDirError(
                ", ".join(self.configured), f"none of the specified log dirs can be created or validated: {causes}"
            )

    def _note_offline(self, path: str, reason: str) -> None:
        self.offline[path] = reason
        logger.error("Stopping serving logs in dir %s: %s", path, reason)

    def _common_meta(self) -> MetaProperties:
        """Cluster id and broker id that the directories agree on, each None where no directory has it."""
        found = [directory.meta for directory in self.live.values() if directory.meta is not None]
        clusters = {meta.cluster_id for meta in found if meta.cluster_id is not None}
        brokers = {meta.broker_id for meta in found if meta.broker_id is not None}
        if len(clusters) > 1 or len(brokers) > 1:
            raise InconsistentMetadataError(
                "BrokerMetadata is not consistent across log.dirs. This could happen if multiple brokers shared a log "
                f"directory (log.dirs) or partial data was manually copied from another broker. Found: {found}"
            )
        return MetaProperties(cluster_id=next(iter(clusters), None), broker_id=next(iter(brokers), None))

    def check_meta(self, cluster_id: str, broker_id: int) -> None:
        """Raise InconsistentClusterIdError or InconsistentBrokerIdError for directories of another broker."""
        stored = self.meta
        if stored.cluster_id is not None and stored.cluster_id != cluster_id:
            raise InconsistentClusterIdError(
                f"The Cluster ID {cluster_id} doesn't match stored clusterId {stored.cluster_id} in meta.properties. "
                "The broker is trying to join the wrong cluster. Configured zookeeper.connect may be wrong."
            )
        if stored.broker_id is not None and stored.broker_id != broker_id:
            raise InconsistentBrokerIdError(
                f"Configured broker.id {broker_id} doesn't match stored broker.id {stored.broker_id} in "
                "meta.properties. If you moved your data, make sure your configured broker.id matches. If you intend "
                "to create a new broker, you should remove all data in your data directories (log.dirs)."
            )

    def write_meta(self, cluster_id: str, broker_id: int) -> None:
        """Write both ids where they are missing, before logs are loaded. A directory that fails goes offline."""
        self.meta = replace(self.meta, cluster_id=cluster_id, broker_id=broker_id)
        for directory in list(self.live.values()):
            known = directory.meta or MetaProperties()
            if known.cluster_id is None and known.broker_id is None:
                known = MetaProperties()  # of what else is in such a file nothing is kept, as in Kafka
            wanted = replace(known, cluster_id=cluster_id, broker_id=broker_id)
            if directory.meta == wanted:
                continue
            if directory.meta is not None and known == MetaProperties():
                self._warn_of_lost_ids(directory, wanted)
            try:
                directory.write_meta(wanted)
            except OSError as error:
                self.take_offline(directory.path, error)

    def _warn_of_lost_ids(self, directory: LogDirectory, wanted: MetaProperties) -> None:
        logger.warning(
            "%s names neither its cluster nor its broker: it has been emptied or overwritten. Rewriting it with "
            "cluster.id=%s and broker.id=%d",
            directory.file(META_PROPERTIES),
            wanted.cluster_id,
            wanted.broker_id,
        )

    def is_live(self, log_dir: str) -> bool:
        """Whether a directory is in service; LOG_DIR_NOT_FOUND where it is not configured."""
        path = absolute(self._files, log_dir)
        if path not in self.configured:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {log_dir} is not found in the config.")
        return path in self.live

    def cordon(self, paths: Sequence[str]) -> None:
        """These take no new logs from now on, and all others do."""
        self.cordoned = frozenset(absolute(self._files, path) for path in paths)

    def is_cordoned(self, log_dir: str) -> bool:
        """Whether a configured directory takes no new logs."""
        return absolute(self._files, log_dir) in self.cordoned

    def disk_usage(self, log_dir: str) -> DiskUsage:
        """Total and usable bytes of a directory's volume (DescribeLogDirs). Raises LogDirError."""
        with failing_takes_offline(log_dir):
            return self._files.disk_usage(log_dir)

    def take_offline(self, path: str, cause: object) -> None:
        """Take a live directory that failed out of service and release its lock."""
        directory = self.live.pop(path)
        self._note_offline(path, str(cause))
        directory.close()

    def close(self) -> None:
        """Release all locks."""
        for directory in self.live.values():
            directory.close()
