"""`kpybroker log verify`: whether the files of a log agree with each other. Read-only; a broker may be running.

A finding is an error or a note. A note is in order but may be worth knowing (offsets that compaction left out, a batch
that is being written). `verify_log` checks a partition; here are paths, log directories and checkpoints.

A log may change while it is read, so errors count only if a second look at the partition finds them again. Without
`.kafka_cleanshutdown` in the log directory a broker is running or was killed: then a batch cut off at the very end of a
log, and a leader-epoch checkpoint that lags behind, are notes, since every start fixes them.

Not here: repairing anything; what the records mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_leader_epochs, decode_meta_properties, decode_offsets
from kpybroker.storage.disk.errors import UnknownLogDirectoryError
from kpybroker.storage.disk.files import Files
from kpybroker.storage.inspection.dump import dump, is_partition_dir, links_in, partition_dirs
from kpybroker.storage.inspection.dump_files import OFFSET_CHECKPOINTS
from kpybroker.storage.inspection.dump_segment import Selection
from kpybroker.storage.inspection.verify_checks import ERROR, NOTE, Finding
from kpybroker.storage.inspection.verify_log import LogLook, Totals, decoded, look_at, look_at_segment

__all__ = ["ERROR", "NOTE", "Finding", "Totals", "verify"]


@dataclass(slots=True)
class _Root:
    """What the files of a log directory say about its partitions."""

    path: str
    is_clean: bool
    offsets: dict[str, dict[TopicPartition, int]]  # by the checkpoint's name
    findings: list[Finding]


def verify(files: Files, path: str, totals: Totals, *, is_deep: bool = True) -> Iterator[Finding]:
    """The findings in a path that `dump.check_path` has accepted; adds the work to `totals`."""
    found = files.stat(path)
    directory = path.rpartition("/")[0]
    if found is None or not found.is_dir:
        yield from _verify_file(files, path, totals, is_deep)
    elif is_partition_dir(files, path):
        yield from _verify_partition(files, path, _read_root(files, directory), totals, is_deep).report.close()
    else:
        yield from _verify_root(files, path, totals, is_deep)


def _verify_file(files: Files, path: str, totals: Totals, is_deep: bool) -> Iterator[Finding]:
    """One file by itself: an index with its segment, a segment with its indexes."""
    directory, _, name = path.rpartition("/")
    base = names.offset_of(name)
    if base is None or not name.endswith(names.SEGMENT_SUFFIXES):
        yield from _unreadable(files, path, is_deep)
        return
    look = LogLook(files, directory, is_deep, is_clean=_is_clean(files, directory.rpartition("/")[0]))
    look.epochs = decoded(look, names.LEADER_EPOCH_CHECKPOINT, decode_leader_epochs) or []
    later = (names.offset_of(entry.name) for entry in files.listdir(directory) if names.is_log_file(entry.name))
    look_at_segment(look, base, min((other for other in later if other is not None and other > base), default=None))
    totals.add(look.totals)
    yield from look.report.close()


def _unreadable(files: Files, path: str, is_deep: bool) -> Iterator[Finding]:
    """A file that no other file has to agree with: only what cannot be dumped is a finding."""
    for row in dump(files, path, Selection(records=is_deep)):
        if row["type"] == "error":
            yield Finding(ERROR, "file", path, row["message"], position=row["position"])
        elif row["type"] == "batch" and not row["isValid"]:
            message = f"stored crc {row['crc']} is not that of the batch"
            yield Finding(ERROR, "crc", path, message, position=row["position"], offset=row["baseOffset"])


def _verify_partition(files: Files, directory: str, root: _Root, totals: Totals, is_deep: bool) -> LogLook:
    """Look; where there are errors, look again, and keep those seen twice."""
    look = _look(files, directory, root, is_deep)
    if any(finding.severity == ERROR for finding in look.report.findings):
        before = set(look.report.findings)
        look = _look(files, directory, root, is_deep)
        look.report.keep(lambda finding: finding.severity == NOTE or finding in before)
    totals.add(look.totals)
    return look


def _look(files: Files, directory: str, root: _Root, is_deep: bool) -> LogLook:
    said = _checkpointed(root, directory)
    look = LogLook(files, directory, is_deep, root.is_clean, said.get(names.LOG_START_OFFSET_CHECKPOINT, 0))
    try:
        look_at(look)
        for name, offset in said.items():
            if offset > look.end_offset and not look.is_cut:
                message = f"{directory.rpartition('/')[2]} at {offset}, its log ends at {look.end_offset}"
                look.report.add(ERROR, "checkpoint", f"{root.path}/{name}", message, offset=offset)
    except OSError as error:
        look.report.add(ERROR, "file", directory, f"cannot be read: {error.strerror or error}")
    return look


def _checkpointed(root: _Root, directory: str) -> dict[str, int]:
    """The offset each checkpoint has for a partition; empty for a directory that is not a partition's."""
    try:
        partition = names.parse_dir_name(directory)
    except UnknownLogDirectoryError:
        return {}
    return {name: offsets[partition] for name, offsets in root.offsets.items() if partition in offsets}


def _verify_root(files: Files, path: str, totals: Totals, is_deep: bool) -> Iterator[Finding]:
    root = _read_root(files, path)
    yield from root.findings
    for link in links_in(files, path):
        yield Finding(ERROR, "file", link, f"cannot be read: {names.IS_LINK}")
    topic_ids: dict[str, tuple[bytes, str]] = {}
    seen: set[TopicPartition] = set()
    for directory in partition_dirs(files, path):
        partition = names.parse_dir_name(directory)
        seen.add(partition)
        look = _verify_partition(files, directory, root, totals, is_deep)
        yield from look.report.close()
        if look.topic_id is not None:
            topic_id, elsewhere = topic_ids.setdefault(partition.topic, (look.topic_id, directory))
            if topic_id != look.topic_id:
                message = f"the topic id is not that of {elsewhere}"
                yield Finding(ERROR, "file", f"{directory}/{names.PARTITION_METADATA}", message)
    for name, offsets in root.offsets.items():
        for stale in sorted(offsets.keys() - seen):
            yield Finding(NOTE, "checkpoint", f"{path}/{name}", f"{stale} has no directory here")


def _read_root(files: Files, path: str) -> _Root:
    """Read before the logs, since those only grow."""
    look = LogLook(files, path, is_deep=False, is_clean=_is_clean(files, path))
    offsets = {name: decoded(look, name, decode_offsets) for name in OFFSET_CHECKPOINTS}
    decoded(look, names.META_PROPERTIES, decode_meta_properties)
    known = {name: found for name, found in offsets.items() if found is not None}
    return _Root(path, look.is_clean, known, look.report.close())


def _is_clean(files: Files, log_dir: str) -> bool:
    return files.stat(f"{log_dir}/{names.CLEAN_SHUTDOWN}") is not None
