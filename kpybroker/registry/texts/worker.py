"""A worker: takes one question after the other from its channel, within the limits, until the channel ends.

The system keeps the limits, not this code: a timer that counts the time on the processor ends the process, inside a
library too, and memory above the limit cannot be had. Then the desk starts another worker.
"""

from __future__ import annotations

import sys
import threading
import traceback
from contextlib import suppress
from typing import IO, Final

from kpybroker.registry.errors import STORE_ERROR
from kpybroker.registry.texts.frames import READY, read_frame, write_frame
from kpybroker.registry.texts.questions import Reply, read_question, refused
from kpybroker.registry.texts.replies import Replies
from kpybroker.system.processes import end_after, highest_memory, limit_files, limit_memory

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
    limit_memory(MEMORY_BYTES_MAX)
    limit_files(FILE_BYTES_MAX)
    threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(RECURSION_MAX)
    thread = threading.Thread(target=_serve, args=(reader, writer), name="kpybroker-registry-text")
    thread.start()
    thread.join()


def _serve(reader: IO[bytes], writer: IO[bytes]) -> None:
    replies = Replies()
    at_start = highest_memory()
    write_frame(writer, READY)
    with suppress(OSError):  # the registry has ended
        while (frame := read_frame(reader)) is not None:
            end_after(frame.number, frame.number * PAUSE_FACTOR)
            content = _reply(replies, frame.content)
            end_after(0, 0)
            is_last = highest_memory() > at_start + GROWTH_BYTES_MAX
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
