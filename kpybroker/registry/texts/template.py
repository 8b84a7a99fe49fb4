"""The process that workers are forked from: it has imported the parsers, and never sees a text.

So a worker is there within milliseconds after the end of another one, and their memory is shared. It has one thread,
and ends when the registry does.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kpybroker.registry.texts import worker
from kpybroker.system import of_the_system
from kpybroker.system.processes import lower_priority

NICE: Final = 5
"""Of all workers but the first: what takes long leaves the processors to those that wait for what does not."""


def main(descriptor: int) -> None:
    """`descriptor` is of the socket with the orders: each is the number of a worker, with the socket of its channel."""
    running: dict[int, int] = {}
    fork: Any = of_the_system(os, "fork")
    receive: Any = of_the_system(socket, "recv_fds")
    home = Path(tempfile.mkdtemp(prefix="kpybroker-registry-"))
    gc.collect()
    gc.freeze()
    try:
        with socket.socket(fileno=descriptor) as orders:
            while True:
                order, descriptors, _, _ = receive(orders, 1, 1)
                if not order:
                    return
                _end(running.pop(order[0], None))
                place = home / str(order[0])
                shutil.rmtree(place, ignore_errors=True)  # what the one before had no time to remove
                place.mkdir()
                process = fork()
                if process == 0:
                    _work(order[0], descriptors[0], place, orders)
                running[order[0]] = process
                os.close(descriptors[0])
    finally:
        for process in running.values():
            _end(process)
        shutil.rmtree(home, ignore_errors=True)


def _end(process: int | None) -> None:
    """Of a worker, which may have ended by itself."""
    if process is not None:
        os.kill(process, of_the_system(signal, "SIGKILL"))
        os.waitpid(process, 0)


def _work(number: int, descriptor: int, place: Path, orders: socket.socket) -> None:
    """In the worker. Does not return: what the template does at its end is not for a worker."""
    with suppress(BaseException):
        orders.close()
        if number > 0:
            lower_priority(NICE)
        tempfile.tempdir = str(place)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 2)  # libraries write there what they think of texts
        channel = socket.socket(fileno=descriptor)
        worker.serve(channel.makefile("rb"), channel.makefile("wb"))
    os._exit(0)
