"""`make exchange`: the whole exchange with real Kafka, begun by either broker, with every way of ending a turn.

python -m compat_tests.exchange.run [--seed 7] [--first kafka] [--keep-files]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from compat_tests.exchange.exchange import Exchange
from compat_tests.exchange.seat import KINDS, Seat
from compat_tests.support.services import ZooKeeper

ENDS = ("stop", "stop", "kill", "kill", "stop", "kill", "kill", "stop")
"""Over eight turns each broker takes over after each way of ending, and ends in each."""


def run(first: str, seed: int, directory: Path) -> list[str]:
    second = next(kind for kind in KINDS if kind != first)
    zookeeper = ZooKeeper(directory / "zookeeper")
    seat = Seat(directory / "seat", f"{zookeeper.connect}/exchange")
    exchange = Exchange(seat, seed, say=lambda text: print(text, flush=True))
    try:
        zookeeper.start()
        for number, end in enumerate(ENDS):
            exchange.turn((first, second)[number % 2], end)
    finally:
        seat.close()
        zookeeper.stop()
    return exchange.problems


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="kpybroker and Kafka take turns on one data directory.")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", choices=KINDS, help="who begins; by default each does, one after the other")
    parser.add_argument("--keep-files", action="store_true")
    options = parser.parse_args(arguments)
    failed = False
    for first in (options.first,) if options.first else KINDS:
        print(f"{first} begins, seed {options.seed}", flush=True)
        directory = Path(tempfile.mkdtemp(prefix="exchange-"))
        problems = run(first, options.seed, directory)
        for problem in problems:
            print(f"PROBLEM {problem}")
        failed |= bool(problems)
        if problems or options.keep_files:
            print(f"the files: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print(f"seed {options.seed}: {'there are problems' if failed else 'everything was found as it was left'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
