"""`kpybroker log dump`: every file of a log as rows of plain values. Read-only.

A path is a file, known by its name, a partition's directory, or a log directory. Every file gives a row of type `file`
and then its own; every row has the `file` it is from. Damage gives rows of type `error`, and the dump continues.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import StorageError, UnknownLogDirectoryError
from kpybroker.storage.disk.files import File, Files
from kpybroker.storage.inspection.dump_files import SMALL_FILES, index_rows, small_file_rows, snapshot_rows
from kpybroker.storage.inspection.dump_segment import Row, Selection, error_row, segment_rows
from kpybroker.storage.inspection.readable import open_file

_REPLACED_SUFFIXES = (names.DELETED_SUFFIX, names.CLEANED_SUFFIX, names.SWAP_SUFFIX)
_PARTITION_FILES = (names.LEADER_EPOCH_CHECKPOINT, names.PARTITION_METADATA)


class NotALogError(StorageError):
    """A path that is neither a file of a log nor a directory with some."""


def kind_of(path: str) -> str | None:
    """The kind of a file by its name: a suffix, or the name of a small file. Files being removed count too."""
    name = os.path.basename(path)
    for suffix in _REPLACED_SUFFIXES:
        name = name.removesuffix(suffix)
    if name in SMALL_FILES:
        return name
    stem, suffix = os.path.splitext(name)
    is_segment = suffix in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT_SUFFIX)
    return suffix if is_segment and names.offset_of(stem) is not None else None


def is_partition_dir(files: Files, path: str) -> bool:
    """Whether a directory holds a partition's files (the name alone may mislead: /tmp/kafka-logs-0)."""
    return any(
        not entry.is_dir and (entry.name in _PARTITION_FILES or kind_of(entry.name) in names.SEGMENT_SUFFIXES)
        for entry in files.listdir(path)
    )


def partition_dirs(files: Files, log_dir: str) -> list[str]:
    """The directories of partitions in a log directory, those that are being deleted left out."""
    found = []
    for entry in sorted(files.listdir(log_dir)):
        if not entry.is_dir or entry.name in names.IGNORED_DIRECTORIES or entry.name.endswith(names.DELETE_DIR_SUFFIX):
            continue
        try:
            names.parse_dir_name(entry.name)
        except UnknownLogDirectoryError:
            continue
        found.append(f"{log_dir}/{entry.name}")
    return found


def links_in(files: Files, log_dir: str) -> list[str]:
    """The symbolic links in a log directory, of which a broker follows none."""
    return [f"{log_dir}/{entry.name}" for entry in sorted(files.listdir(log_dir)) if entry.is_link]


def check_path(files: Files, path: str) -> None:
    """Raises NotALogError for what cannot be dumped or verified at all, OSError for what cannot be read."""
    found = files.stat(path)
    if found is None:
        raise NotALogError(f"{path} does not exist")
    if not found.is_dir:
        if kind_of(path) is None:
            raise NotALogError(f"{path} is not a file of a Kafka log, by its name")
        open_file(files, path).close()
    elif not (
        is_partition_dir(files, path)
        or partition_dirs(files, path)
        or files.stat(f"{path}/{names.META_PROPERTIES}") is not None
    ):
        raise NotALogError(f"{path} holds no Kafka log: no partition's files, and no partitions")


def dump(files: Files, path: str, wanted: Selection) -> Iterator[Row]:
    """The rows of a path that `check_path` has accepted."""
    found = files.stat(path)
    if found is None or not found.is_dir:
        yield from _file(files, path, wanted)
    elif is_partition_dir(files, path):
        yield from _partition(files, path, wanted)
    else:
        for name in sorted(SMALL_FILES):
            if name not in _PARTITION_FILES and files.stat(f"{path}/{name}") is not None:
                yield from _file(files, f"{path}/{name}", wanted)
        for link in links_in(files, path):
            yield error_row(f"cannot be read: {names.IS_LINK}") | {"file": link}
        for directory in partition_dirs(files, path):
            yield from _partition(files, directory, replace(wanted))


def _partition(files: Files, directory: str, wanted: Selection) -> Iterator[Row]:
    """Metadata first, then segment by segment; segments before the wanted offset are left out."""
    entries = sorted(entry.name for entry in files.listdir(directory) if not entry.is_dir)
    for name in _PARTITION_FILES:
        if name in entries:
            yield from _file(files, f"{directory}/{name}", wanted)
    known = [name for name in entries if kind_of(name) is not None and name not in _PARTITION_FILES]
    bases = sorted({names.offset_of(name) or 0 for name in known if name.endswith(names.LOG_SUFFIX)})
    first = max((base for base in bases if base <= wanted.offset), default=0)
    for name in sorted(known, key=_segment_order):
        if wanted.is_over:
            return
        if (names.offset_of(name) or 0) >= first:
            yield from _file(files, f"{directory}/{name}", wanted)


def _segment_order(name: str) -> tuple[int, str, int]:
    """Within a segment: snapshot (the state before it), log, indexes; files being removed after current ones.

    Files of other kinds, which belong elsewhere, are first.
    """
    kind = kind_of(name) or ""
    order = (names.SNAPSHOT_SUFFIX, *names.SEGMENT_SUFFIXES)
    return names.offset_of(name) or 0, name.rpartition(kind)[2], order.index(kind) if kind in order else -1


def _file(files: Files, path: str, wanted: Selection) -> Iterator[Row]:
    try:
        file = open_file(files, path)
    except OSError as error:
        yield error_row(f"cannot be read: {error.strerror or error}") | {"file": path}
        return
    try:
        yield {"type": "file", "size": file.size(), "file": path}
        for row in _rows(file, path, wanted):
            yield row | {"file": path}
    except OSError as error:
        yield error_row(f"cannot be read: {error.strerror or error}") | {"file": path}
    finally:
        file.close()


def _rows(file: File, path: str, wanted: Selection) -> Iterator[Row]:
    kind = kind_of(path)
    assert kind is not None, path
    if kind == names.LOG_SUFFIX:
        return segment_rows(file, path, wanted)
    if kind == names.SNAPSHOT_SUFFIX:
        return snapshot_rows(file, path)
    if kind in names.INDEX_SUFFIXES:
        return index_rows(file, path, kind)
    return small_file_rows(file, path, SMALL_FILES[kind])
