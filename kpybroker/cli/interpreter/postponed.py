"""Modules of others that a broker at rest does not use: they are loaded when something first looks into one.

trio imports `ssl` and `hmac` for what a plain listener never does, the standard library compression that
no one asked for, and we a codec for batches that may never arrive. Together these are 20 ms of a start and 6 MB. Python
imports what is in `sys.modules` without running it, so there each of them is an empty module until its first attribute
is missed. A thread that misses one while another loads it waits.

Only the command line does this, for its own process. It changes when a module runs, not what it is. `from ssl import X`
looks into the module, and so loads it at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from threading import RLock
from types import ModuleType
from typing import Any, Final

POSTPONED: Final = ("bz2", "cramjam", "hmac", "ipaddress", "lzma", "shutil", "ssl", "tempfile")

_LOADING = RLock()
_BEGUN: Final = "__postponed_begun__"


class _Postponed(ModuleType):
    """Becomes the module itself, in place, when an attribute is missed."""

    def __getattr__(self, name: str) -> Any:
        with _LOADING:
            if type(self) is _Postponed:
                if _BEGUN in self.__dict__:  # its own code asks for what it does not have yet
                    raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
                self._load()
        return getattr(self, name)

    def _load(self) -> None:
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        self.__dict__[_BEGUN] = True
        try:
            spec.loader.exec_module(self)
        finally:
            del self.__dict__[_BEGUN]
        self.__class__ = ModuleType  # type: ignore[assignment]  # it has its code now


def postpone(names: Iterable[str] = POSTPONED) -> None:
    """Put off loading each of these modules that is not loaded yet, and can be found."""
    for name in names:
        if name not in sys.modules:
            spec = find_spec(name)
            if spec is not None and spec.loader is not None:
                sys.modules[name] = _made(name, spec)


def is_postponed(name: str) -> bool:
    """Whether the module waits for its first use."""
    return type(sys.modules.get(name)) is _Postponed


def _made(name: str, spec: ModuleSpec) -> ModuleType:
    module = _Postponed(name)
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__file__ = spec.origin
    module.__package__ = "" if spec.submodule_search_locations is None else name
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    return module
