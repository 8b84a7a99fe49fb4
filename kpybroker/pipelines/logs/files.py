"""Files of logs: their lines as they are written, and which lines make one event.

`Tail` reads what has been written to a file since, and notices when it was rotated: renamed, with a new one in its
place, or cut to nothing. `Joiner` joins the lines of an event: a line that begins like no event of any known format
belongs to the one before. Both are bounded: a line by `READ_MAX` bytes, an event by `LINES_MAX` lines and, unless it is
one line, `EVENT_MAX` bytes. What follows is another event.
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
EVENT_MAX = 800_000
"""Below what clients and brokers take by default, 1 MB. A line has at most three times its bytes as UTF-8, 786 KB."""
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
    """The lines of one file, from `begin` on if that file is still there. A file that is missing has no lines yet.

    A file that was renamed since `begin`, with its old name at the start of the new one, is read to its end first.
    """

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
        # not splitlines, which takes the carriage returns of a progress bar for ends
        for part in re.findall(rb"[^\n]*\n|[^\n]+", data[:whole]):
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
        renamed = self._renamed()
        try:
            self._file = (renamed or self.path).open("rb")
        except FileNotFoundError:
            return False
        if self.begin is not None and self.begin.inode == self.inode:
            self._position = self.begin.position
        return True

    def _renamed(self) -> Path | None:
        """The file of `begin`, if it has another name now."""
        if self.begin is None or not self.path.parent.is_dir():
            return None
        for file in sorted(self.path.parent.iterdir()):
            if file.name.startswith(self.path.name) and file != self.path and file.is_file():
                found = file.stat()
                if found.st_ino == self.begin.inode and found.st_size >= self.begin.position:
                    return file
        return None

    def _is_another(self) -> bool:
        try:
            return self.path.stat().st_ino != self.inode
        except FileNotFoundError:
            return False  # between the rename and the new file


@dataclass(slots=True)
class Joiner:
    """Lines to events."""

    _lines: list[Line] = field(default_factory=list)
    _size: int = 0

    @property
    def pending(self) -> Line | None:
        """The first line of the event that may have more."""
        return self._lines[0] if self._lines else None

    def push(self, line: Line) -> str | None:
        """Take in a line; the event that it ends, if it does. Empty lines between events are left out."""
        ended = None
        size = len(line.text.encode()) + 1
        full = len(self._lines) == LINES_MAX or self._size + size > EVENT_MAX
        if self._lines and (full or _BEGINS.match(line.text)):
            ended = self.end()
        if line.text or self._lines:
            self._lines.append(line)
            self._size += size
        return ended

    def end(self) -> str | None:
        """The event that is there, which has no more lines."""
        text = "\n".join(line.text for line in self._lines).rstrip()
        self._lines.clear()
        self._size = 0
        return text or None
