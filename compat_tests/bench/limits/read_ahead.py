"""What reading ahead of a sequential reader would save: the broker's own `Sending`, with and without `posix_fadvise`.

    python -m compat_tests.bench.limits.read_ahead [--megabytes 400] [--rounds 5] [--ahead 0,1,4,16] [--dir DIRECTORY]

A log file is sent in slices as large as the responses of a consumer, through a socket, to a thread that throws away
what it gets. Before each round the file is in the page cache whole, by half (each second megabyte) or not at all. With
`--ahead N`, what reads a cold step also asks the system for the N megabytes after it. Rounds alternate.

Counted are the processor time of the sender's process (user and system, the reader's thread included, which is the same
in each), the steps that were cold and went through a thread, and the seconds, which say little on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import socket
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compat_tests.bench.measuring.brokers import scratch_directory
from compat_tests.bench.measuring.report import Table, number
from kpybroker.broker.network.sending import Progress, Sending
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.segments.file_records import FileRecords
from kpybroker.storage.segments.segment_files import SegmentFiles

MEGABYTE = 1 << 20
SLICE_BYTES = MEGABYTE
"""`max.partition.fetch.bytes` of stock consumers."""
STATES = ("warm", "half cold", "cold")


class Round(NamedTuple):
    cpu_s: float
    cold_steps: int
    seconds: float


def fill(path: Path, megabytes: int) -> None:
    block = random.Random(1).randbytes(MEGABYTE)
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(block)
        os.fsync(file.fileno())


def bring(path: Path, state: str) -> None:
    """The file's pages as the state says."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if state == "warm":
            for position in range(0, size, MEGABYTE):
                os.pread(descriptor, MEGABYTE, position)
        elif state == "cold":
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            bring(path, "warm")
            for position in range(0, size, 2 * MEGABYTE):
                os.posix_fadvise(descriptor, position, MEGABYTE, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def send_all(path: Path, ahead_bytes: int) -> Round:
    """The whole file, slice after slice, as to one consumer. A cold step is read in this thread: a hop costs the same
    whether or not something is read ahead."""
    out, to_reader = socket.socketpair()
    reader = threading.Thread(target=_drain, args=(to_reader,))
    reader.start()
    records = FileRecords(SegmentFiles(local_files(), str(path.parent), 0), create=False)
    cold_steps, before, begin = 0, used_s(), time.perf_counter()
    descriptor = records.shared.file.fileno()
    asked_to = 0
    for position in range(0, records.size, SLICE_BYTES):
        part = records.slice(position, SLICE_BYTES)
        sending = Sending(out, [part])
        while (progress := sending.resume()) is not Progress.SENT:
            if progress is not Progress.COLD:
                continue
            cold_steps += 1
            sending.warm()
            here = sending._warm_until
            if ahead_bytes and here + ahead_bytes // 2 > asked_to:
                os.posix_fadvise(descriptor, here, ahead_bytes, os.POSIX_FADV_WILLNEED)
                asked_to = here + ahead_bytes
        part.release()
    out.shutdown(socket.SHUT_WR)
    reader.join()
    found = Round(used_s() - before, cold_steps, time.perf_counter() - begin)
    records.close()
    out.close()
    to_reader.close()
    return found


def _drain(sock: socket.socket) -> None:
    buffer = bytearray(MEGABYTE)
    while sock.recv_into(buffer):
        pass


def measure(path: Path, aheads: Sequence[int], rounds: int) -> dict[tuple[str, int], list[Round]]:
    found: dict[tuple[str, int], list[Round]] = {(state, ahead): [] for state in STATES for ahead in aheads}
    for count in range(1 + rounds):
        for state in STATES:
            for ahead in aheads if count % 2 else list(reversed(aheads)):
                bring(path, state)
                one = send_all(path, ahead * MEGABYTE)
                if count:
                    found[state, ahead].append(one)
    return found


def table(found: dict[tuple[str, int], list[Round]], megabytes: int) -> Table:
    rows = []
    for (state, ahead), rounds in found.items():
        cpu = statistics.median(one.cpu_s for one in rounds) / megabytes * 1000
        cold = statistics.median(one.cold_steps for one in rounds)
        rate = statistics.median(megabytes / one.seconds for one in rounds)
        rows.append([state, f"{ahead} MB" if ahead else "none", number(cpu), f"{cold:.0f}", number(rate)])
    return Table(["pages", "read ahead", "CPU, s/GB", "cold steps", "MB/s"], rows)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ahead", default="0,1,4,16", metavar="LIST", help="megabytes [0,1,4,16]")
    parser.add_argument("--dir", help="where the file is [the system's temporary directory]")
    options = parser.parse_args()
    aheads = [int(part) for part in options.ahead.split(",")]
    with scratch_directory(options.dir) as scratch:
        path = scratch / "00000000000000000000.log"
        fill(path, options.megabytes)
        print(table(measure(path, aheads, options.rounds), options.megabytes).markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
