"""Replacing segments by others, crash-safe: used by compaction and by the splitting of overflowed segments.

The steps of Kafka's LocalLog.replaceSegments; the loader can undo or finish each of them. New segments are complete as
`.cleaned` (a crash removes them) -> renamed to `.swap`, highest offset first (a crash before the lowest is renamed
removes them all, a crash after it finishes the swap) -> the old ones are renamed to `.deleted` -> the new ones lose
their suffix -> the directory is synced.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import Files
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_files import SegmentFiles, SegmentSettings
from kpybroker.storage.segments.segment_list import LogSegments
from kpybroker.wire.constants import INT32_MAX

if TYPE_CHECKING:
    from kpybroker.config.topic import LogConfig

logger = logging.getLogger("kafka.log.LocalLog")

APPEND_CHUNK = 1024 * 1024


def create_cleaned_segment(
    files: Files, directory: str, base_offset: int, settings: SegmentSettings, *, now_ms: int
) -> LogSegment:
    """Create an empty segment with suffix `.cleaned`, in place of one that is left from before. Raises OSError."""
    cleaned = SegmentFiles(files, directory, base_offset, names.CLEANED_SUFFIX)
    cleaned.remove()
    return LogSegment(cleaned, settings, now_ms=now_ms, create=True)


def replace_segments(
    files: Files,
    directory: str,
    segments: LogSegments,
    new: Sequence[LogSegment],
    old: Sequence[LogSegment],
    *,
    sync: bool = True,
) -> list[str]:
    """Put `new` (sealed, synced, `.cleaned`) in the place of `old`; the paths to remove later.

    Without `sync` the caller syncs the directory, before it removes or relies on anything.
    """
    ordered = sorted(new, key=lambda segment: segment.base_offset)
    known = [segment for segment in old if segments.get(segment.base_offset) is segment]
    for segment in reversed(ordered):
        segment.change_suffix(names.CLEANED_SUFFIX, names.SWAP_SUFFIX)
    for segment in known:
        segments.remove(segment.base_offset)
    deleted: list[str] = []
    for segment in sorted(known, key=lambda found: found.base_offset):
        segment.change_suffix("", names.DELETED_SUFFIX)
        segment.close_handlers()
        deleted += segment.files.paths()
    for segment in ordered:
        segments.add(segment)
        segment.change_suffix(names.SWAP_SUFFIX, "")
        segment.is_new = False
    if sync:
        files.sync_dir(directory)
    return deleted


def split_overflowed_segment(
    files: Files,
    directory: str,
    segment: LogSegment,
    segments: LogSegments,
    config: LogConfig,
    now_ms: int,
) -> list[str]:
    """Split a segment so that no part's offsets overflow its index (KAFKA-6264); the paths to remove later."""
    logger.info("Splitting overflowed segment %s", segment)
    modified_ms = segment.last_modified_ms
    parts: list[LogSegment] = []
    try:
        settings = SegmentSettings(config.segment_index_bytes, config.index_interval_bytes)
        _copy_in_parts(files, directory, segment, parts, settings, now_ms)
        if sum(part.size for part in parts) != segment.size:
            raise OSError(f"Inconsistent segment sizes after split of {segment}")
        for part in parts:
            part.seal()
            part.sync()
            part.become_inactive()
            files.set_mtime(part.records.path, modified_ms)
    except BaseException:
        for part in parts:
            part.close_handlers()
            part.files.remove()
        raise
    return replace_segments(files, directory, segments, parts, [segment])


def _copy_in_parts(
    files: Files,
    directory: str,
    segment: LogSegment,
    parts: list[LogSegment],
    settings: SegmentSettings,
    now_ms: int,
) -> None:
    for _, header, batch in segment.records.batches(window=APPEND_CHUNK):
        if not parts or header.last_offset - parts[-1].base_offset > INT32_MAX:
            parts.append(create_cleaned_segment(files, directory, header.base_offset, settings, now_ms=now_ms))
        parts[-1].append(batch, header.base_offset, header.last_offset, header.max_timestamp, header.last_offset)
