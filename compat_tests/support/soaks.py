"""What the programs that soak a broker share: their options, the ZooKeeper they may need, and their last words."""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat_tests.support.services import ZooKeeper


def soak_parser(description: str, kills: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--broker", choices=["kpybroker", "kafka"], default="kpybroker")
    parser.add_argument("--zookeeper", action="store_true", help="coordinate through a real ZooKeeper")
    parser.add_argument("--keep-files", action="store_true")
    return parser


def add_transaction_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--transaction-version", type=int, choices=(1, 2), help="of clients that know both; 2, with Kafka 3.9 always 1"
    )


def check_transaction_version(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Fill it in where it was not given."""
    if options.broker == "kafka" and options.transaction_version == 2:
        parser.error("Kafka 3.9 has no transactions of version 2")
    if options.transaction_version is None:
        options.transaction_version = 1 if options.broker == "kafka" else 2


def say(text: str) -> None:
    print(text, flush=True)


@contextmanager
def connect_string(directory: Path, chroot: str, *, needed: bool) -> Iterator[str | None]:
    """Of a real ZooKeeper that lives as long as the context; None where none is needed."""
    if not needed:
        yield None
        return
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    try:
        yield f"{zookeeper.connect}/{chroot}"
    finally:
        zookeeper.stop()


def report(problems: Sequence[str], directory: Path, options: argparse.Namespace, verdict: str) -> int:
    """Print the problems, or the verdict that there are none; the files stay where they are wanted. The exit code."""
    for problem in problems:
        print(f"PROBLEM {problem}")
    if problems or options.keep_files:
        print(f"the broker's files: {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"seed {options.seed}: {f'{len(problems)} problems' if problems else verdict}")
    return 1 if problems else 0
