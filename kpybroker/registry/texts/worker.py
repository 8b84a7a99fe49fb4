"""A worker: takes one question after the other from its channel, within the limits, until the channel ends.

The system keeps the limits, not this code: a timer that counts the time on the processor ends the process, inside a
library too, and memory above the limit cannot be had. Then the desk starts another worker.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from contextlib import suppress
from typing import IO, Any, Final

from kpybroker.registry.errors import STORE_ERROR
from kpybroker.registry.texts.frames import READY, read_frame, write_frame
from kpybroker.registry.texts.questions import Reply, read_question, refused
from kpybroker.registry.texts.replies import Replies
from kpybroker.system import of_the_system

MEMORY_BYTES_MAX: Final = 512 << 20
"""Of addresses: libraries and the stack of the thread are 200 MiB of it."""
FILE_BYTES_MAX: Final = 64 << 20
"""Of a file that protoc reads or writes."""
GROWTH_BYTES_MAX: Final = 64 << 20
"""A worker that has taken more ends after its reply, which gives the memory back."""
REPLY_BYTES_MAX: Final = 16 << 20
STACK_BYTES: Final = 64 << 20
RECURSION_MAX: Final = 20_000
PAUSE_FACTOR: Final = 10
"""How much longer than its time on the processor a text may take on a machine that is busy with other things."""


def serve(reader: IO[bytes], writer: IO[bytes]) -> None:
    """Returns when the channel ends. Texts are read in a thread, which can have the stack that they need."""
    _limit()
    threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(RECURSION_MAX)
    thread = threading.Thread(target=_serve, args=(reader, writer), name="kpybroker-registry-text")
    thread.start()
    thread.join()


def _serve(reader: IO[bytes], writer: IO[bytes]) -> None:
    replies = Replies()
    at_start = _memory_bytes()
    write_frame(writer, READY)
    with suppress(OSError):  # the registry has ended
        while (frame := read_frame(reader)) is not None:
            _alarm(frame.number)
            content = _reply(replies, frame.content)
            _alarm(0)
            is_last = _memory_bytes() > at_start + GROWTH_BYTES_MAX
            write_frame(writer, content, float(is_last))
            if is_last:
                break


def _reply(replies: Replies, content: bytes) -> bytes:
    try:
        made = replies.reply(read_question(content)).message()
        return made if len(made) <= REPLY_BYTES_MAX else refused("what is to be said of it is too long").message()
    except MemoryError:
        return refused("it needs more memory than a schema may take").message()
    except Exception:  # a bug: the desk logs it
        return Reply(None, STORE_ERROR, traceback.format_exc()).message()


def _alarm(cpu_s: float) -> None:
    """Both end the process; 0 stops them."""
    set_timer: Any = of_the_system(signal, "setitimer")
    if set_timer is not None:
        set_timer(signal.ITIMER_PROF, cpu_s)
        set_timer(signal.ITIMER_REAL, cpu_s * PAUSE_FACTOR)


def _limit() -> None:
    """What a process may take in its whole life. Windows has no such limits."""
    with suppress(ImportError):
        import resource

        wanted = {"RLIMIT_AS": MEMORY_BYTES_MAX, "RLIMIT_FSIZE": FILE_BYTES_MAX, "RLIMIT_CORE": 0}
        for name, most in wanted.items():
            with suppress(OSError, ValueError, AttributeError):  # macOS has not all of them
                resource.setrlimit(getattr(resource, name), (most, most))


def _memory_bytes() -> int:
    """The most that this process has had."""
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
