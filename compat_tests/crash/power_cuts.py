"""Cut the power of a broker's disk under load, again and again, and check what is left. Needs root, to mount.

    python -m compat_tests.crash.power_cuts --cuts 100 --seed 7 [--flush default] [--keep-files]

The broker's data, its coordination tree included, lies on an ext4 of its own in a file (`support/loop_disk`). At a cut
the file system stops where it is and forgets its journal's last transactions, the broker is killed, and the journal is
replayed by the next mount. Mount options change from cut to cut: they decide what of the unsynced data happens
to be on the device, from nothing over whole pages to lengths without data.

- every-message (`log.flush.interval.messages=1` for all topics, `__consumer_offsets` included) is `soak` with cuts for
  kills: the same clients live through all of them, and whatever was acknowledged, read, or committed is there.
- every-500-ms, and default, which syncs at a roll only: producers start again after each cut, for what they received
  may be lost. What is left must be a prefix of that and reach the checkpointed recovery point at least: no hole,
  nothing twice, nothing invented. A topic with `flush.messages=1` is kept all the same, and so are the topics
  as such, for the tree is synced before it responds. After an orderly stop, as one time in five, nothing is lost.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from compat_tests.crash.history import Partition, Stored, check
from compat_tests.crash.load import TopicMaker, read_all
from compat_tests.crash.soak import KILL_AFTER_S_MAX, KILLED_WHILE_STARTING, OVERRIDES, PROGRESS_DEADLINE_S, Soak
from compat_tests.support.machine.loop_disk import MIB, LoopDisk, may_mount
from compat_tests.support.services import Broker
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_offsets

DISK_BYTES = 4096 * MIB
MOUNT_OPTIONS = (
    "defaults",  # data reach the device after seconds, names and lengths every five
    "commit=1",
    "nodelalloc,commit=1",  # data and lengths together, every second
    "nodelalloc,data=writeback,commit=1",  # a length may come without its data
)
LIVES_ON_S_MAX = 0.2
STOPPED_BEFORE = 0.2
NEEDS_ROOT = """power_cuts mounts a file system of its own, which only root may:
run it as root, or in a container with CAP_SYS_ADMIN and loop devices."""


class PoweredBroker(Broker):
    """A broker whose every `kill` is a power cut."""

    def __init__(self, directory: Path, seed: int, overrides: dict[str, str]) -> None:
        self.disk = LoopDisk(directory / "power", DISK_BYTES)
        data_dir = self.disk.path / "data"
        super().__init__("kpybroker", directory / "broker", None, {**OVERRIDES, **overrides, "log.dirs": str(data_dir)})
        self.data_dir = data_dir
        self._random = Random(seed)
        self.disk.mount()

    def kill(self) -> None:
        """Cut the power between two calls, not in one.

        An fsync under way may return 0 for a transaction that the cut has ended: jbd2_complete_transaction looks for
        it, finds neither a running nor a committing one, and takes it for written. Seen in 1 of 60 cuts of a program
        that only appends and syncs, and in none of 150 that were made like this.
        """
        if is_running := self.service.running:
            self.service.pause()
        self.disk.cut_power()
        if is_running:
            self.service.resume()
        # It lives on for a moment, and may not claim anything that the dead disk has not taken.
        time.sleep(self._random.uniform(0, LIVES_ON_S_MAX))
        self.service.kill()
        self.disk.unmount()
        self.disk.mount(self._random.choice(MOUNT_OPTIONS))

    def close(self) -> None:
        self.service.kill()
        self.disk.close()


@dataclass(slots=True)
class LosingSuffixes(Soak):
    """After each cut the history forgets what was lost, if that is a suffix of what was not flushed."""

    problems: list[str] = field(default_factory=list)
    lost: int = 0

    def run(self, kills: int) -> list[str]:
        random = Random(self.seed)
        self._create_topics()
        self._start(TopicMaker(self.broker.bootstrap, self.history, self.seed))
        self._start_writers()
        for number in range(1, kills + 1):
            self._await_load()
            time.sleep(random.uniform(0, KILL_AFTER_S_MAX))
            was_stopped = random.random() < STOPPED_BEFORE
            if was_stopped:
                self.broker.stop()
            self.broker.kill()
            self._abandon_writers()
            if random.random() < KILLED_WHILE_STARTING:
                self._kill_while_starting(random.uniform(0.05, 1.0))
            recovery_points = _recovery_points(self.broker.data_dir)
            self.broker.start()
            stored = read_all(self.broker.bootstrap, self.partitions)
            lost = 0 if was_stopped else self._forget_lost_suffixes(stored, recovery_points)
            self.problems += check(replace(self.history, created=set(), deleted=set()), stored)
            how = "after a stop" if was_stopped else f"{lost} lost"
            self.say(f"cut {number}/{kills}: {sum(map(len, stored.values()))} records, {how}")
            self._start_writers()
        self._await_load()
        self._stop_clients()
        return self.problems + self._judge()

    def _abandon_writers(self) -> None:
        for writer in self.writers:
            writer.abandon()
        for writer in self.writers:
            writer.join(PROGRESS_DEADLINE_S)

    def _forget_lost_suffixes(
        self, stored: dict[Partition, list[Stored]], recovery_points: dict[Partition, int]
    ) -> int:
        """And remember what is there: it must be there, or be lost from an offset on, after the next cut too."""
        lost = 0
        for partition, records in stored.items():
            end, flushed = len(records), recovery_points.get(partition, 0)
            if end < flushed:
                self.problems.append(f"{partition}: flushed to {flushed}, and ends at {end}")
            if partition[0] == "flushed":  # by its own flush.messages
                continue
            promised = self.history.acknowledged[partition]
            lost += sum(offset >= end for offset in promised)
            self.history.acknowledged[partition] = {at: sent for at, sent in promised.items() if at < end}
            self.history.observed[partition] = {record.offset: record.sent for record in records}
        self.lost += lost
        return lost


def _recovery_points(data_dir: Path) -> dict[Partition, int]:
    """What the device says is flushed."""
    path = data_dir / names.RECOVERY_POINT_CHECKPOINT
    found = decode_offsets(path.read_bytes(), str(path)) if path.exists() else {}
    return {(at.topic, at.partition): offset for at, offset in found.items()}


FLUSHES: dict[str, tuple[dict[str, str], type[Soak]]] = {
    "every-message": ({"log.flush.interval.messages": "1"}, Soak),
    "every-500-ms": ({"log.flush.interval.ms": "500"}, LosingSuffixes),
    "default": ({"log.flush.interval.ms": str(2**63 - 1)}, LosingSuffixes),
}


def cut(flush: str, cuts: int, seed: int, directory: Path, say: Callable[[str], None] = print) -> list[str]:
    """A broker of its own in `directory`, its power cut so many times; everything that is wrong."""
    overrides, scenario = FLUSHES[flush]
    broker = PoweredBroker(directory, seed, overrides)
    try:
        broker.start()
        return scenario(broker, seed, say).run(cuts)
    finally:
        broker.close()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Cut the power of a broker's disk under load; check what is left.")
    parser.add_argument("--cuts", type=int, default=100, help="of each kind")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--flush", choices=list(FLUSHES), action="append")
    parser.add_argument("--keep-files", action="store_true")
    options = parser.parse_args(arguments)
    if not may_mount():
        print(NEEDS_ROOT, file=sys.stderr)
        return 2
    problems: list[str] = []
    for flush in options.flush or FLUSHES:
        print(f"{options.cuts} power cuts, flush {flush}, seed {options.seed}", flush=True)
        directory = Path(tempfile.mkdtemp(prefix="power-cuts-"))
        found = cut(flush, options.cuts, options.seed, directory, lambda text: print(text, flush=True))
        for problem in found:
            print(f"PROBLEM {problem}")
        if found or options.keep_files:
            print(f"the broker's log output and disk image: {directory}")
        else:
            shutil.rmtree(directory)
        problems += found
    print(
        f"seed {options.seed}: {f'{len(problems)} problems' if problems else 'everything that was promised was kept'}"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
