"""Counted open files, and the slices of them that leave storage.

A fetch responds with slices: a slice is a range of a segment's file, sent by `os.sendfile(socket, slice.fileno(), ...)`
or read. It keeps the file open until `release`, whatever happens to the segment: an unlinked or renamed file keeps its
bytes, and a truncation while a reader has the file gives the segment a new file and leaves the old one to the reader
(`FileRecords.truncate_to`).

Counts are changed on the loop only. A flush job in a thread uses a file that was acquired for it before.
"""

from __future__ import annotations

from kpybroker.storage.disk.files import File, Files, read_exactly


class SharedFile:
    """An open file that closes when its last holder releases it. A new one has one holder."""

    __slots__ = ("file", "holders")

    def __init__(self, file: File) -> None:
        self.file = file
        self.holders = 1

    def acquire(self) -> SharedFile:
        """Add a holder."""
        assert self.holders > 0, "acquire of a closed file"
        self.holders += 1
        return self

    def release(self) -> None:
        """Remove a holder; the last one closes the file."""
        assert self.holders > 0, "release of a closed file"
        self.holders -= 1
        if self.holders == 0:
            self.file.close()


class LazyFile:
    """A file by name that is opened at first use, and created then if `create`. `dirty`: it has data to sync."""

    __slots__ = ("_create", "_files", "_shared", "dirty", "path")

    def __init__(self, files: Files, path: str, *, create: bool) -> None:
        self._files = files
        self.path = path
        self._create = create
        self._shared: SharedFile | None = None
        self.dirty = False

    @property
    def shared(self) -> SharedFile:
        """The open file. A caller that keeps it beyond the call must `acquire` it. Raises OSError."""
        shared = self._shared
        if shared is None:
            shared = self._shared = SharedFile(self._files.open(self.path, create=self._create))
        return shared

    def sync(self) -> None:
        """Make the data durable where there are any. Raises OSError."""
        if self.dirty:
            self.shared.file.sync()
            self.dirty = False

    def rename_to(self, path: str) -> None:
        """Rename the file, if it exists. Raises OSError."""
        if self._files.stat(self.path) is not None:
            self._files.rename(self.path, path)
        self.path = path

    def close(self) -> None:
        """Close the file until the next use."""
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.release()


class FileSlice:
    """`size` bytes from `position` of a segment's file. The caller that receives it calls `release` once."""

    __slots__ = ("_shared", "position", "size")

    def __init__(self, shared: SharedFile, position: int, size: int) -> None:
        self._shared: SharedFile | None = shared.acquire()
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"FileSlice(position={self.position}, size={self.size})"

    def fileno(self) -> int:
        """The descriptor of the file, for sendfile. Raises ValueError once released."""
        return self._open_file().fileno()

    def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes of the slice, from `offset` within it; fewer than asked only at its end."""
        wanted = self.size - offset if size is None else min(size, self.size - offset)
        if wanted <= 0:
            return b""
        return read_exactly(self._open_file(), wanted, self.position + offset)

    def narrow(self, offset: int, size: int) -> None:
        """Keep only `size` bytes from `offset` within it."""
        assert offset >= 0
        assert offset + size <= self.size
        self.position += offset
        self.size = size

    def release(self) -> None:
        """Release the file. Idempotent, as a connection may fail while it sends."""
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.release()

    def _open_file(self) -> File:
        if self._shared is None:
            raise ValueError("the slice was released")
        return self._shared.file
