"""Files of logs: their lines as they are written, and which lines make one event.

`Tail` reads what has been written to a file since, and notices when it was rotated: renamed, with a new one in its
place, or cut to nothing. `Joiner` joins the lines of an event: a line that begins like no event of any known format
belongs to the one before. Both are bounded: a line by `READ_MAX` bytes, an event by `LINES_MAX` lines.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from kpybroker.pipelines.logs.formats import BEGINNINGS

READ_MAX = 262_144
LINES_MAX = 1_000
_BEGINS = re.compile(BEGINNINGS)


class Line(NamedTuple):
    """One line without its end, and the position in the file at which it begins."""

    text: str
    position: int


class Place(NamedTuple):
    """Where to go on in a file: the number that the file system gives it, and a position in bytes."""

    inode: int
    position: int


@dataclass(slots=True)
class Tail:
    """The lines of one file, from `begin` on if it is still the same file. A file that is missing has no lines yet."""

    path: Path
    begin: Place | None = None
    _file: IO[bytes] | None = None
    _position: int = 0

    @property
    def inode(self) -> int:
        """Of the file that is read; 0 before it is open."""
        return os.fstat(self._file.fileno()).st_ino if self._file is not None else 0

    @property
    def position(self) -> int:
        """The end of what was read, in bytes."""
        return self._position

    def read(self, *, last: bool = False) -> list[Line]:
        """More lines, none if there are none now. A line without an end waits for it, unless it is the `last` read.

        Raises OSError.
        """
        if self._file is None and not self._open():
            return []
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size < self._position:
            self._position = 0
        self._file.seek(self._position)
        data = self._file.read(READ_MAX)
        # a file that was renamed is read to its end first, a line without an end included
        at_end = len(data) < READ_MAX
        rotated = at_end and self._is_another()
        end = data.rfind(b"\n") + 1
        # a line that is longer than one read is cut
        whole = len(data) if rotated or (last and at_end) or (end == 0 and not at_end) else end
        lines = []
        for part in data[:whole].splitlines(keepends=True) if whole else []:
            lines.append(Line(part.rstrip(b"\r\n").decode(errors="replace"), self._position))
            self._position += len(part)
        if rotated:
            self.close()
        return lines

    def close(self) -> None:
        """Close the file; another `read` opens what is at the path by then, from its start."""
        if self._file is not None:
            self._file.close()
        self._file, self._position, self.begin = None, 0, None

    def _open(self) -> bool:
        try:
            self._file = self.path.open("rb")
        except FileNotFoundError:
            return False
        if self.begin is not None and self.begin.inode == self.inode:
            self._position = self.begin.position
        return True

    def _is_another(self) -> bool:
        try:
            return self.path.stat().st_ino != self.inode
        except FileNotFoundError:
            return False  # between the rename and the new file


@dataclass(slots=True)
class Joiner:
    """Lines to events."""

    _lines: list[Line] = field(default_factory=list)

    @property
    def pending(self) -> Line | None:
        """The first line of the event that may have more."""
        return self._lines[0] if self._lines else None

    def push(self, line: Line) -> str | None:
        """Take in a line; the event that it ends, if it does. Empty lines between events are left out."""
        ended = None
        if self._lines and (_BEGINS.match(line.text) or len(self._lines) == LINES_MAX):
            ended = self.end()
        if line.text or self._lines:
            self._lines.append(line)
        return ended

    def end(self) -> str | None:
        """The event that is there, which has no more lines."""
        text = "\n".join(line.text for line in self._lines).rstrip()
        self._lines.clear()
        return text or None
