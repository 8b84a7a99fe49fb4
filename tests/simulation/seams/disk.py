"""The disk of one host: files in memory that lose what was not synced, and fail when they are asked to."""

from __future__ import annotations

import errno
import os
import random
from typing import Self

from tests.simulation.seams.trace import Trace
from tests.support.storage.lossy_files import LossyFiles

BYTES_MAX = 1 << 30


class SimulatedDisk:
    """`files` is what the present process has; after a crash the next one gets others."""

    def __init__(self, host: str, trace: Trace, chance: random.Random) -> None:
        self._host, self._trace, self._chance = host, trace, chance
        self.syncs_in_order = chance.random() < 0.5
        self.failing_syncs = 0
        self.free_bytes: int | None = None
        self.files = self._prepared(LossyFiles())
        self.files.syncs_all = chance.random() < 0.5

    def _prepared(self, files: LossyFiles) -> LossyFiles:
        files.before_operation = self._before
        files.free_bytes = self.free_bytes
        return files

    def limit(self, free_bytes: int | None) -> None:
        """So many bytes more can be written; None: any number. It stays so for the processes to come."""
        self.free_bytes = self.files.free_bytes = free_bytes

    def _before(self, number: int, kind: str, path: str) -> None:
        self._trace.add(self._host, f"{kind} {path}")
        if kind == "sync" and self.failing_syncs:
            self.failing_syncs -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def detach(self, *, power_cut: bool) -> Self:
        """The process has ended: what it still does goes nowhere. With a power cut what was not synced may be lost."""
        before = self.files
        before.before_operation = None
        self.free_bytes = before.free_bytes
        self.files = before.crash(self._chance, in_order=self.syncs_in_order) if power_cut else before.snapshot()
        self._prepared(self.files)
        self.failing_syncs = 0
        return self
