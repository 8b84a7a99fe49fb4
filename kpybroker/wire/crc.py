"""CRC-32C over any buffer, from the `crc32c` package's extension module alone.

Importing the package looks up its own version with `importlib.metadata`, which takes a fifteenth of a broker's start.
So the extension is loaded by itself, and the package only where the extension is not found under its name.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Protocol

from kpybroker.wire.primitives import Buffer


class Checksum(Protocol):
    """A CRC-32C function that can continue from an earlier checksum."""

    def __call__(self, data: Buffer, value: int = 0, /) -> int:
        """The checksum of `data`, or of `data` appended to the bytes whose checksum is `value`."""


def _load() -> Checksum:
    package = find_spec("crc32c")
    places = package.submodule_search_locations if package is not None else None
    extension = PathFinder.find_spec("crc32c._crc32c", places)
    module: Any
    if extension is None or extension.loader is None:
        import crc32c as module
    else:
        module = module_from_spec(extension)
        extension.loader.exec_module(module)
    function: Checksum = module.crc32c
    return function


crc32c = _load()
