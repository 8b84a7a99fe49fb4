"""The process that evaluates JSONPath filters: a line of JSON in, `1` or `0` out, until its input ends.

A line has a path and a value. Nothing of the console is imported. The parent ends a process that takes too long; where
the system can, it is bounded as well in memory, and in the time that it has without a parent.
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import Any, Final

from jsonpath import JSONPathEnvironment, JSONPathError

UNBOUNDED: Final = ("match", "search")
"""Functions with regular expressions: they are left out, since no one misses them in a filter."""
MEMORY_BYTES_MAX: Final = 1 << 30
CPU_S_MAX: Final = 3600


def compiled(text: str) -> Any:
    """The path of a filter. Raises JSONPathError and RecursionError for a text that is none."""
    made = JSONPathEnvironment()
    for name in UNBOUNDED:
        made.function_extensions.pop(name, None)
    return made.compile(text)


_compiled = lru_cache(16)(compiled)


def matches(path: str, value: Any) -> bool:
    """Whether the path finds anything in the value."""
    try:
        return any(True for _ in _compiled(path).finditer(value))
    except (ValueError, JSONPathError, RecursionError, TypeError):
        return False


def main() -> None:
    """Evaluate what arrives."""
    _limit()
    for line in sys.stdin.buffer:
        path, value = json.loads(line)
        sys.stdout.write("1\n" if matches(path, value) else "0\n")
        sys.stdout.flush()


def _limit() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for kind, most in ((resource.RLIMIT_AS, MEMORY_BYTES_MAX), (resource.RLIMIT_CPU, CPU_S_MAX)):
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):
            continue  # the system's own limit is lower, or it has none of this kind
