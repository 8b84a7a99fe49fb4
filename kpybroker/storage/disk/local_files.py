"""The file system of this machine, in the form that its operating system needs."""

from __future__ import annotations

from kpybroker.storage.disk.files import Files
from kpybroker.storage.disk.os_files import OsFiles
from kpybroker.system.files import HAS_POSIX_FILES


def local_files() -> Files:
    """One for each broker: it remembers what it has locked, and on some systems what is open."""
    if HAS_POSIX_FILES:
        return OsFiles()
    from kpybroker.storage.disk.portable_files import PortableFiles

    return PortableFiles()
