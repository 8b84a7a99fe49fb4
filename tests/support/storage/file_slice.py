"""A slice of a file as a transport takes it, without the counting of its readers."""

from __future__ import annotations

import os


class Slice:
    def __init__(self, descriptor: int, position: int, size: int) -> None:
        self.descriptor, self.position, self.size = descriptor, position, size

    def fileno(self) -> int:
        return self.descriptor

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        return os.pread(self.descriptor, self.size - offset if size is None else size, self.position + offset)
