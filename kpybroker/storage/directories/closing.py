"""Closing the logs of a directory, as a clean stop does.

A log that is closed syncs what was written to it since its last flush, and nothing else. Where many logs have something
to sync, one sync of the file system does it for all of them: it takes milliseconds, where syncing four files and a
directory of each of 10 000 logs took a minute. It also waits for what other programs have written to that file system,
so few logs are synced one by one.

Whatever fails here is left to the log's own `close`, which finds the failure again and knows which log it concerns.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kpybroker.storage.disk.errors import failing_takes_offline
from kpybroker.storage.disk.files import Files, replace_files
from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import KafkaError

logger = logging.getLogger("kafka.log.LogManager")

SYNCED_EACH_MAX = 100
"""Logs with something to sync; more of them are synced at once."""


def close_all(files: Files, log_dir: str, logs: Sequence[Log]) -> bool:
    """Close the logs of one log directory; False where a full disk left some that the next start has to recover.

    Raises LogDirError.
    """
    dirty = [log for log in logs if not log.is_closed and log.is_dirty]
    if len(dirty) > SYNCED_EACH_MAX:
        _sync_at_once(files, log_dir, dirty)
    if any(log.unflushed.has_new_name for log in logs):
        with failing_takes_offline(log_dir):
            files.sync_dir(log_dir)
        for log in logs:
            log.unflushed.has_new_name = False
    is_clean = True
    for log in logs:
        try:
            log.close()
        except KafkaError as error:
            logger.error("The next start recovers %s: %s", log.partition, error)
            is_clean = False
    return is_clean


def _sync_at_once(files: Files, log_dir: str, logs: Sequence[Log]) -> None:
    """Leave as little as possible for `close` to sync. Raises LogDirError."""
    sealed = [log for log in logs if _is_sealed(log)]
    try:
        if not files.sync_all(log_dir):
            return
    except OSError as error:
        # It may be about the file of another program; the files of the logs report their own errors.
        logger.warning("Syncing each log in %s by itself, since its file system reports: %s", log_dir, error)
        return
    for log in sealed:
        log.note_synced()
    contents: dict[str, bytes] = {}
    for log in sealed:
        captured = log.epoch_checkpoint.capture(log.epochs, log.log_end_offset)
        if captured is not None:
            contents[log.epoch_checkpoint.path] = captured[1]
    try:
        replace_files(files, log_dir, contents)
    except OSError as error:
        logger.warning("Writing each leader-epoch-checkpoint in %s by itself: %s", log_dir, error)
        for log in sealed:
            log.epoch_checkpoint.forget()


def _is_sealed(log: Log) -> bool:
    try:
        log.seal()
    except KafkaError:  # a full disk
        return False
    return True
