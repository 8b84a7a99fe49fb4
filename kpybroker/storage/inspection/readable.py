"""Opening a file of a log that may be anything: what stands in its place is not waited for."""

from __future__ import annotations

from kpybroker.storage.disk.files import File, Files


def open_file(files: Files, path: str) -> File:
    """The file at a path, for reading. Raises OSError for a pipe, a socket or a directory: they have no positions."""
    file = files.open(path, writable=False)
    try:
        file.pread(1, 0)
    except OSError:
        file.close()
        raise
    return file
