"""What the last look at a log's directory found (`directories.presence`); each log has its own."""

from __future__ import annotations

from typing import Final, NamedTuple

NEVER: Final = -1


class SeenLog(NamedTuple):
    """Which directory it was, when it changed last, and where the log ended; before the first look nothing is known.

    `settled_at` is that end where the directory had not changed since the look before, `NEVER` where it had.
    """

    device: int = 0
    inode: int = 0
    mtime_ms: int = 0
    end_offset: int = NEVER
    settled_at: int = NEVER


UNSEEN: Final = SeenLog()
