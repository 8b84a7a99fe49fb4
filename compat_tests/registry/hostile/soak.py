"""Ten thousand hostile schemas of the three types, sent by clients at once, next to one that registers and reads.

    python -m compat_tests.registry.hostile.soak --texts 10000 [--minutes 60] [--clients 6] [--keep-files]

`make soak-schemas` runs it. With `--minutes` it ends by then, and says how many it has sent.

Each text is sent to three routes, and what was registered is deleted. A line for each twentieth: the memory of the
registry's own process and of all its processes, the longest waits of the other client, and what of them was the
machine's (`compat_tests/registry/hostile/machine.py`). It fails if a response has another status than 200, 404, 409,
413, 422 and 429, if the registry ends, if the other client waits for more than 2 s without counting the time in which
no processor was free, or if the memory has grown by more than 64 MiB since the first fifth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from compat_tests.registry.conftest import Instance
from compat_tests.registry.hostile.machine import Control, Delays
from compat_tests.registry.hostile.strangers import Strangers, Wait, asked
from compat_tests.support.services import Broker
from compat_tests.support.soaks import report, say

WAIT_S_MAX = 2.0
GROWTH_BYTES_MAX = 64 << 20
PARTS = 20
SETTLED = PARTS // 5


class Sample(NamedTuple):
    """Memory in bytes: of the registry's process, and of all its processes without counting what they share twice."""

    own: int
    whole: int


def sample(process: psutil.Process) -> Sample:
    """Now."""
    whole = 0
    for one in (process, *process.children(recursive=True)):
        try:
            whole += one.memory_full_info().pss
        except psutil.Error:  # a worker that has ended
            continue
    return Sample(process.memory_info().rss, whole)


def watch(instance: Instance, broker: Broker, control: Control, options: argparse.Namespace) -> list[str]:
    """What is wrong."""
    texts = options.texts
    strangers = Strangers(instance.url, texts, is_kept=False, seconds_max=options.minutes * 60)
    threads = [threading.Thread(target=strangers.run) for _ in range(options.clients)]
    is_over = threading.Event()
    process = psutil.Process(instance.process.pid)
    delays = Delays([instance.process.pid, broker.service.pid])
    samples = [sample(process)]
    say(f"at the start {_shown(samples[0])}")
    for thread in threads:
        thread.start()
    waits: list[Wait] = []
    begin, shown, controlled = time.monotonic(), 0, 0
    for wait in asked(instance.url, is_over, is_kept=False, delays=delays.seconds):
        waits.append(wait)
        if strangers.sent >= texts * len(samples) // PARTS:
            samples.append(sample(process))
            say(f"{strangers.sent} texts {_shown(samples[-1])}, {_longest(waits[shown:], control.waits[controlled:])}")
            shown, controlled = len(waits), len(control.waits)
        if not any(thread.is_alive() for thread in threads):
            is_over.set()
    _summarize(waits, control.waits)
    say(f"{strangers.sent} texts, {time.monotonic() - begin:.0f} s, statuses {dict(strangers.statuses)}")
    found = [f"{one}" for one in strangers.unexpected[:20]]
    for wait in waits:
        if max(wait.register, wait.read) - wait.delayed > WAIT_S_MAX:
            found.append(f"the other client waited: {_longest([wait], [])}")
    grown = samples[-1].whole - samples[min(SETTLED, len(samples) - 1)].whole
    if grown > GROWTH_BYTES_MAX:
        found.append(f"the memory has grown by {grown >> 20} MiB")
    return found


def _longest(waits: Sequence[Wait], controlled: Sequence[float]) -> str:
    longest = max(waits, key=lambda wait: wait.register + wait.read)
    delayed = f"{longest.delayed:.2f} s of it without a processor"
    read, control = max(wait.read for wait in waits), max(controlled, default=0.0)
    return f"longest register {longest.register:.2f} s ({delayed}), read {read:.2f} s, bare server {control:.2f} s"


def _summarize(waits: Sequence[Wait], controlled: Sequence[float]) -> None:
    registered, read, delayed = (sorted(times) for times in zip(*waits, strict=True))
    for name, times in (
        ("register", registered),
        ("read", read),
        ("without a processor in both", delayed),
        ("bare server", sorted(controlled)),
    ):
        slow = times[-1 - len(times) // 100]
        say(f"{name}: {len(times)}, median {median(times):.3f} s, p99 {slow:.3f} s, longest {times[-1]:.3f} s")


def _shown(one: Sample) -> str:
    return f"{one.own >> 20} MiB, with all processes {one.whole >> 20} MiB"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=inf)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--keep-files", action="store_true")
    options = parser.parse_args()
    options.seed = 0
    directory = Path(tempfile.mkdtemp(prefix="soak-schemas-"))
    broker = Broker("kpybroker", directory / "broker", None, {"group.initial.rebalance.delay.ms": "0"})
    broker.start()
    try:
        instance = Instance("-b", broker.bootstrap, log=directory / "registry.log")
        control = Control()
        try:
            found = watch(instance, broker, control, options)
        finally:
            control.stop()
        if instance.stop() != 0:
            found.append("the registry did not end in order")
        instance.close()
    finally:
        broker.service.stop()
    return report(found, directory, options, "hostile texts, and others did not notice")


if __name__ == "__main__":
    sys.exit(main())
