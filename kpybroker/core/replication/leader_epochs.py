"""Which leader epoch began at which offset of a log: LeaderEpochFileCache without the file.

Rules: epochs and their start offsets both increase strictly; an entry is set once and changed only by truncation. The
cache serves OffsetForLeaderEpoch (KIP-101, KIP-320). `version` counts changes, so that the writer of
`leader-epoch-checkpoint` knows whether the file is up to date.

Not here: the checkpoint file (storage/checkpoints), and when it is written (storage/log).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from kpybroker.core.topic_partition import KEPT_MAX, shared

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    """The first offset of a leader epoch."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """The largest epoch not above the one asked for, and where it ends. (-1, -1) where that is unknown."""

    epoch: int
    end_offset: int


_UNDEFINED = EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)


class LeaderEpochCache:
    """The epochs of one log, oldest first."""

    __slots__ = ("_entries", "latest_epoch", "version")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: tuple[EpochEntry, ...] = ()  # most logs have one, and the same
        self.latest_epoch = UNDEFINED_EPOCH
        self.version = 0
        noted: list[EpochEntry] = []
        for entry in entries:
            _note(noted, entry.epoch, entry.start_offset)
        if noted:
            self._set(noted)
        self.version = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> list[EpochEntry]:
        """A copy of all entries, oldest first."""
        return list(self._entries)

    @property
    def latest_entry(self) -> EpochEntry | None:
        """The entry of the present leader epoch; None in an empty cache."""
        return self._entries[-1] if self._entries else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The entry of the oldest known leader epoch; None in an empty cache."""
        return self._entries[0] if self._entries else None

    def _set(self, entries: Sequence[EpochEntry]) -> None:
        self._entries = _alone(*entries[0]) if len(entries) == 1 else tuple(entries)
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH
        self.version += 1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that an epoch begins at an offset; True for a change.

        Entries that contradict the new one (same or later epoch, same or later offset) are removed.
        """
        if self._entries and epoch == self.latest_epoch and start_offset >= self._entries[-1].start_offset:
            return False
        noted = list(self._entries)
        _note(noted, epoch, start_offset)
        self._set(noted)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The end of an epoch: the start of the next one, or the log's end for the latest."""
        entries = self._entries
        if epoch == UNDEFINED_EPOCH:
            return _UNDEFINED
        if entries and entries[-1].epoch == epoch:
            return EpochEndOffset(epoch, log_end_offset)
        higher = bisect_right(entries, epoch, key=_epoch_of)
        if higher == len(entries):
            return _UNDEFINED
        found = epoch if higher == 0 else entries[higher - 1].epoch
        return EpochEndOffset(found, entries[higher].start_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch that an offset belongs to; None where the offset is before the first known one."""
        slot = bisect_right(self._entries, offset, key=_start_of)
        return self._entries[slot - 1].epoch if slot else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove epochs that begin at or after an offset; True for a change."""
        entries = self._entries
        count = len(entries)
        if end_offset < 0:
            return False
        while count and entries[count - 1].start_offset >= end_offset:
            count -= 1
        if len(entries) == count:
            return False
        self._set(entries[:count])
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove epochs that end before an offset, and start the one that contains it there; True for a change."""
        entries = self._entries
        keep = bisect_right(entries, start_offset, key=_start_of)
        if keep == 0:
            return False
        first = EpochEntry(entries[keep - 1].epoch, start_offset)
        if keep == 1 and entries[0] == first:
            return False
        self._set((first, *entries[keep:]))
        return True

    def clear(self) -> None:
        """Remove every entry."""
        if self._entries:
            self._set(())


def _note(entries: list[EpochEntry], epoch: int, start_offset: int) -> None:
    """`LeaderEpochCache.assign`, in a list. Raises ValueError."""
    if epoch < 0 or start_offset < 0:
        raise ValueError(f"Received invalid partition leader epoch entry ({epoch}, {start_offset})")
    if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
        return
    while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
        entries.pop()
    entries.append(shared(EpochEntry(epoch, start_offset)))


@lru_cache(maxsize=KEPT_MAX)
def _alone(epoch: int, start_offset: int) -> tuple[EpochEntry, ...]:
    """The only entry of a log: of ten thousand logs that begin with the same epoch one object."""
    return (EpochEntry(epoch, start_offset),)


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
