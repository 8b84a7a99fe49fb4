"""Where the files of one segment are, and what a segment is opened with."""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import Files, unlink_if_exists


class SegmentSettings(NamedTuple):
    """What a topic's configuration says about one segment. `preallocate_bytes` is 0 where nothing is preallocated."""

    max_index_bytes: int
    index_interval_bytes: int
    roll_jitter_ms: int = 0
    preallocate_bytes: int = 0


class SegmentFiles:
    """The names of a segment's files; the segment and its indexes share one object, so that a rename reaches all.

    `suffix` follows the usual name: `.cleaned`, `.swap`, `.deleted`, or nothing.
    """

    __slots__ = ("base_offset", "directory", "files", "suffix")

    def __init__(self, files: Files, directory: str, base_offset: int, suffix: str = "") -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix

    def path(self, kind: str) -> str:
        """The path of one file by its kind (`.index`)."""
        return names.segment_file(self.directory, self.base_offset, kind) + self.suffix

    def paths(self) -> list[str]:
        """The paths of all files, whether they exist or not."""
        return [self.path(kind) for kind in names.SEGMENT_SUFFIXES]

    def remove(self) -> None:
        """Remove all files that exist. Raises OSError."""
        for path in self.paths():
            unlink_if_exists(self.files, path)
