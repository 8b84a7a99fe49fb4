"""Makes the real world an error: sockets, files that are not code, processes, threads, its clock and its randomness.

Python's audit events report sockets, files and processes wherever they are asked for. An audit hook can't be removed:
it is added once and does something only while a world runs. Clocks, randomness and threads have no events: there the
functions are replaced. `time.perf_counter`, by which brokers only measure, is simulated time.
"""

from __future__ import annotations

import logging
import os
import pkgutil
import random
import sys
import threading
import time
import types
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any
from unittest.mock import patch

import trio

import kpybroker.broker
import kpybroker.coordination
import kpybroker.core
import kpybroker.storage
import kpybroker.wire
from kpybroker.broker.maintenance import log_cleaner, time_retention
from kpybroker.wire.api import API_INFO
from tests.simulation.seams.cleaner import SimulatedCleaner
from tests.simulation.seams.work import SimulatedWork

FORBIDDEN = (
    "socket.connect",
    "socket.bind",
    "socket.getaddrinfo",
    "socket.gethostname",
    "subprocess.Popen",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.truncate",
    "sqlite3.connect",
)
CODE = (".py", ".pyc", ".so")
PERF_COUNTERS = (time.perf_counter, time.perf_counter_ns)


class RealWorld(AssertionError):
    """Something in a simulated world has asked for the real one."""


class _Guard:
    """Of the thread that runs the world; what others do, such as a worker's of pytest, is none of it."""

    thread = 0
    is_on = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_on or threading.get_ident() != self.thread:
            return
        if event == "open":
            if isinstance(args[0], str) and args[0].endswith(CODE):
                return
            raise RealWorld(f"open {args[0]!r}")
        if event in FORBIDDEN:
            raise RealWorld(f"{event} {args!r}")


_GUARD = _Guard()
_INSTALLED: list[_Guard] = []


def _install() -> None:
    if not _INSTALLED:
        sys.addaudithook(_GUARD)
        _INSTALLED.append(_GUARD)


def _refusal(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        if threading.get_ident() != _GUARD.thread:
            return real(*args, **options)
        raise RealWorld(name)

    return refuse


def _import_everything() -> None:
    """What is imported at first use would be imported in one run and not in the next: that is all done before."""
    for package in (kpybroker.broker, kpybroker.coordination, kpybroker.core, kpybroker.storage, kpybroker.wire):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            try:
                import_module(module.name)
            except ImportError:  # of an option that is not installed
                continue
    for info in API_INFO.values():
        info.response_class()


_IMPORTED: list[bool] = []


def _measuring_modules() -> list[tuple[types.ModuleType, str, object]]:
    """Where a function that measures is known by a name of its own."""
    return [
        (module, name, value)
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith("kpybroker.")
        for name, value in vars(module).items()
        if any(value is counter for counter in PERF_COUNTERS)
    ]


@contextmanager
def forbidden(work: SimulatedWork, now: Callable[[], float]) -> Iterator[None]:
    """Within it the real world is an error, threads are `work`'s, and measured times are simulated ones."""
    _install()
    if not _IMPORTED:
        _import_everything()
        _IMPORTED.append(True)
    for_logging = types.SimpleNamespace(time=now, strftime=time.strftime, localtime=time.gmtime, gmtime=time.gmtime)
    simulated = {PERF_COUNTERS[0]: now, PERF_COUNTERS[1]: lambda: int(now() * 1e9)}
    with ExitStack() as stack:
        for module, name, value in _measuring_modules():
            stack.enter_context(patch.object(module, name, simulated[value]))  # type: ignore[index]
        for owner, name in (
            (time, "time"),
            (time, "time_ns"),
            (time, "monotonic"),
            (time, "sleep"),
            (os, "urandom"),
            (uuid, "uuid4"),
            (uuid, "uuid1"),
            (random, "random"),
            (random, "randint"),
            (random, "choice"),
            (random, "shuffle"),
            (threading.Thread, "start"),
            (trio.from_thread, "run"),
            (trio.from_thread, "run_sync"),
        ):
            stack.enter_context(patch.object(owner, name, _refusal(f"{owner.__name__}.{name}", getattr(owner, name))))
        stack.enter_context(patch.object(logging, "time", for_logging))
        stack.enter_context(patch.object(trio.to_thread, "run_sync", work.run_sync))
        for module in (log_cleaner, time_retention):
            stack.enter_context(patch.object(module, "CleanerProcess", partial(SimulatedCleaner, work)))
        _GUARD.thread, _GUARD.is_on = threading.get_ident(), True
        stack.callback(setattr, _GUARD, "is_on", False)
        yield
