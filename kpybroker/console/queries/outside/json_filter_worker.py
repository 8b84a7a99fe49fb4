"""The process that evaluates JSONPath filters: a line of JSON in, `1` or `0` out, until its input ends.

A line has a path and a value. Nothing of the console is imported. The parent ends a process that takes too long. Where
the system can, it is bounded as well in memory, and an alarm ends it if the parent is gone.
"""

from __future__ import annotations

import json
import signal
import sys
from functools import lru_cache
from typing import Any, Final

from jsonpath import JSONPathEnvironment, JSONPathError

from kpybroker.system.processes import limit_memory

UNBOUNDED: Final = ("match", "search")
"""Functions with regular expressions: they are left out, since no one misses them in a filter."""
MEMORY_BYTES_MAX: Final = 1 << 30
ALARM_S: Final = 10


def compiled(text: str) -> Any:
    """The path of a filter. For a text that is none, raises JSONPathError, RecursionError, and for numbers that are out
    of range ValueError and ArithmeticError."""
    made = JSONPathEnvironment()
    for name in UNBOUNDED:
        made.function_extensions.pop(name, None)
    return made.compile(text)


_compiled = lru_cache(16)(compiled)


def matches(path: str, value: Any) -> bool:
    """Whether the path finds anything in the value."""
    try:
        return any(True for _ in _compiled(path).finditer(value))
    except (ValueError, ArithmeticError, JSONPathError, RecursionError, TypeError):
        return False


def main() -> None:
    """Evaluate what arrives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe
    alarm = getattr(signal, "alarm", lambda _: None)  # not on Windows
    limit_memory(MEMORY_BYTES_MAX)
    for line in sys.stdin.buffer:
        path, value = json.loads(line)
        alarm(ALARM_S)
        is_match = matches(path, value)
        alarm(0)
        sys.stdout.write("1\n" if is_match else "0\n")
        sys.stdout.flush()
