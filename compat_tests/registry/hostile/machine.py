"""What the machine itself costs, so that a wait for the registry is not mixed up with one for a processor.

Two measures of one run. `Delays` reads how long the threads that a request goes through were ready and waited for a
processor (Linux counts it for each thread), and how long the host gave the processors of this machine to others while
they had work (its steal, which no thread sees). `Control` asks a bare server, which does nothing else, from the same
process and at the same pace: what it waits for, no registry has caused.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

NANOSECONDS = 1e-9
PACE_S = 0.05
STEAL = 8
"""Of the words of /proc/stat's line `cpu` (proc_stat(5))."""


class Delays:
    """Of the main threads of some processes and of the thread that asks; 0 where the system does not count them.

    Steal is counted as its mean over the processors: a request is on one of them at a time.
    """

    def __init__(self, processes: Sequence[int]) -> None:
        self._files = [Path(f"/proc/{process}/schedstat") for process in processes]
        self._files.append(Path("/proc/thread-self/schedstat"))

    def seconds(self) -> float:
        """Since each of them started. Of the calling thread, so always of the same one."""
        return sum(self._of(file) for file in self._files) + stolen_s()

    @staticmethod
    def _of(file: Path) -> float:
        try:
            return int(file.read_text().split()[1]) * NANOSECONDS
        except (OSError, IndexError):
            return 0.0


def stolen_s(stat: Path = Path("/proc/stat")) -> float:
    """For how long a processor of this machine had work and the host ran something else, since the start: the mean."""
    try:
        line = stat.read_text().partition("\n")[0].split()
        return int(line[STEAL]) / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
    except (OSError, IndexError, ValueError):
        return 0.0


class Control:
    """A bare server in a process of its own, and a thread that asks it until `stop`."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "compat_tests.registry.hostile.machine"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        self.waits: list[float] = []
        """In seconds, in order."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            while not self._is_over.wait(PACE_S):
                begin = time.monotonic()
                connection.sendall(b"?")
                connection.recv(1)
                self.waits.append(time.monotonic() - begin)

    def stop(self) -> None:
        """End both."""
        self._is_over.set()
        self._thread.join()
        self._process.kill()
        self._process.communicate()


async def _serve() -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1):
            writer.write(data)

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
