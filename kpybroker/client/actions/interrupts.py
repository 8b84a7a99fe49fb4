"""Ctrl-C that loses nothing: it ends a wait at once, and work only between two records.

Python's own KeyboardInterrupt may arrive anywhere, also after a record was read and before it was sent.
"""

from __future__ import annotations

import io
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """With it, the first signal sets `requested`, and raises KeyboardInterrupt in `wait_readable`; a second one
    raises it anywhere."""

    def __init__(self) -> None:
        self.requested = False
        self._is_waiting = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_second, self.requested = self.requested, True
        if is_second or self._is_waiting:
            raise KeyboardInterrupt

    def wait_readable(self, source: Any, timeout_s: float | None = None) -> bool:
        """Until a stream has something to read, or its end; False if it has neither in time. Raises KeyboardInterrupt
        on the first signal.
        """
        try:
            descriptor = source.fileno()
        except (io.UnsupportedOperation, AttributeError):
            return True
        self._is_waiting = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            ready, _, _ = select.select([descriptor], [], [], timeout_s)
            return bool(ready)
        except (OSError, ValueError):
            return True  # a kind of stream that cannot be waited for: reading it waits
        finally:
            self._is_waiting = False


class InterruptibleSource:
    """A binary stream whose reads are waits: a signal arrives before or after one, never with its data."""

    def __init__(self, source: Any, interrupts: Interrupts) -> None:
        self._source = source
        self._interrupts = interrupts

    def read1(self, size: int, /) -> bytes:
        """What has arrived, at most `size`; nothing at the end. Raises KeyboardInterrupt."""
        self._interrupts.wait_readable(self._source)
        data: bytes = self._source.read1(size)
        return data


@contextmanager
def noted_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Ctrl-C raises KeyboardInterrupt as always, and what this yields returns True from then on.

    A loop that only Ctrl-C ends asks in each iteration: Python drops an exception that is raised while it finalizes an
    object, such as a response of HTTP that was read to its end.
    """
    is_pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal is_pressed
        is_pressed = True
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    is_ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: is_pressed
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)
