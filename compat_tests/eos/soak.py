"""Copy exactly once while the broker and the copiers are killed, frozen and replaced, and check what came out.

    python -m compat_tests.eos.soak --records 100000 --kills 20 --seed 7 [--groups] [--cluster] [--broker kafka]
        [--transaction-version 1]

Three partitions are copied by stock clients, a transaction for every ten records: the first by Kafka's
TransactionalMessageCopier, the second by confluent-kafka, the third by both in turns under one transactional id. Java's
transactions are of version 2, with the copier of Kafka 4, or of version 1, with that of 3.9; confluent's are of
version 1. All of them abort transactions on purpose. Readers of committed data, librdkafka's and Java's, look on.
Between the kills
copiers are killed too, or frozen within a transaction while a successor takes over; thawed, a zombie must be fenced.
The source is filled in portions, one for each kill and one after them, so that no copier runs ahead; and the
end of a zombie's transaction is held back (`gate.py`), so that it is frozen within one at any speed.
With `--groups` the copiers are members of one group instead, and share the partitions as they come and go. With
`--cluster` the broker is three (`place.py`): leadership moves with every kill, and each of them must tell the same.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from compat_tests.eos.check import Copying, check
from compat_tests.eos.copiers import CONFLUENT, JAVA, Copier, Task
from compat_tests.eos.place import GROUP, OVERRIDES, SOURCE, TARGET, WITHOUT_FEATURES, OneBroker, Place, Replicated
from compat_tests.eos.readers import JavaReader, Reader, read_to_end
from compat_tests.eos.transaction_log import have_version_2, used
from compat_tests.support.cluster import Cluster
from compat_tests.support.quick import committed, fill
from compat_tests.support.services import Broker
from compat_tests.support.soaks import (
    add_transaction_version,
    check_transaction_version,
    connect_string,
    report,
    say,
    soak_parser,
)
from compat_tests.support.tools import VERSIONS
from compat_tests.support.waiting import eventually
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM

PARTITIONS = 3
KINDS = ((JAVA,), (CONFLUENT,), (CONFLUENT, JAVA))
"""By partition: who copies it, and who after him."""
PROGRESS_DEADLINE_S = 120.0


@dataclass(slots=True)
class Numbers:
    """What happened, for the last line."""

    broker_kills: int = 0
    copier_kills: int = 0
    zombies: Counter[str] = field(default_factory=Counter)
    gave_up: int = 0


class Soak:
    """A place, the copiers and readers there."""

    def __init__(
        self, place: Place, seed: int, records: int, *, groups: bool, version: int, say: Callable[[str], None]
    ) -> None:
        """`version` is that of Java's transactions."""
        self.place = place
        self.random = Random(seed)
        self.groups = groups
        self.version = version
        self.say = say
        self.numbers = Numbers()
        self.problems: list[str] = []
        each = records // PARTITIONS
        self.inputs = {part: [f"{part}:{n}:{'.' * (n * 7 % 90)}" for n in range(each)] for part in range(PARTITIONS)}
        self.filled = [0] * PARTITIONS
        self.copiers: dict[int, Copier] = {}
        """One for each partition, or member of the group, as soon as there is something to copy."""
        self.ended: list[Copier] = []
        self.zombies: list[Copier] = []

    @property
    def total(self) -> int:
        return sum(map(len, self.inputs.values()))

    def run(self, kills: int, zombies: int) -> list[str]:
        """Everything that is wrong afterwards. The place is left stopped."""
        if self.version == EPOCH_BUMP_FROM:
            have_version_2(self.place.bootstrap)
        for topic in (SOURCE, TARGET):
            self.place.create_topic(topic, PARTITIONS)
        self.reader = Reader(self.place.bootstrap, TARGET, range(PARTITIONS))
        self.java_reader = JavaReader(self.place.bootstrap, TARGET)
        try:
            self._disturb(kills, zombies)
            self._fill_all(self.total)
            self._await(self.total)
            self._finish()
            self._bury_zombies()
            return self._judge()
        finally:
            self.reader.stop()
            self.java_reader.stop()
            for copier in (*self.copiers.values(), *self.zombies):
                copier.kill()

    # --- the source

    def _fill_all(self, count: int) -> None:
        """Until there are `count` records."""
        for partition in range(PARTITIONS):
            self._fill(partition, count // PARTITIONS)

    def _fill(self, partition: int, count: int) -> None:
        fill(self.place.bootstrap, SOURCE, self.inputs[partition][self.filled[partition] : count], partition)
        self.filled[partition] = count

    # --- copiers

    def _next_kind(self, number: int, after: Copier | None) -> str:
        kinds = KINDS[number]
        return kinds[0] if after is None else kinds[(kinds.index(after.kind) + 1) % len(kinds)]

    def _start(self, number: int, after: Copier | None = None) -> Copier:
        kind = self._next_kind(number, after)
        task = Task(
            bootstrap=self.place.bootstrap,
            group=GROUP,
            source=SOURCE,
            target=TARGET,
            transactional_id=f"copier-{number}",
            partition=None if self.groups else number,
            # Java's ends when it has copied what there was at its start, confluent's waits for the rest
            count=self.filled[number] if kind == JAVA else len(self.inputs[number]),
            seed=self.random.randrange(2**30),
            jars=VERSIONS[self.version - 1],
        )
        return Copier(kind, task)

    def _replace(self, number: int) -> Copier:
        """Start a successor; who was there is not looked at any more."""
        before = self.copiers[number]
        self.ended.append(before)
        self.copiers[number] = self._start(number, before)
        return before

    def _look_after(self) -> None:
        """Start those that are not there, or have ended, where there is something left to do."""
        for number in range(PARTITIONS):
            copier = self.copiers.get(number)
            if copier is None:
                if self.filled[number]:
                    self.copiers[number] = self._start(number)
            elif not copier.running:
                self._look_after_ended(number, copier)

    def _look_after_ended(self, number: int, copier: Copier) -> None:
        if copier.result() != 0:
            self.numbers.gave_up += 1
            if not copier.is_excused():
                self.problems.append(f"a copier gave up: {copier.said()}")
            self._replace(number)
        elif self.reader.count < sum(self.filled) if self.groups else copier.task.count < self.filled[number]:
            self._replace(number)

    def _await(self, count: int) -> None:
        """Until so many records were read by the one who looks on."""

        def is_there() -> bool:
            self._look_after()
            said = [copier.said() for copier in self.copiers.values()]
            assert self.reader.count >= count, f"{self.reader.count} of {count}; {said}"
            return True

        eventually(is_there, f"{count} copied records", PROGRESS_DEADLINE_S)

    # --- what happens to them

    def _disturb(self, kills: int, zombies: int) -> None:
        """Kill the broker during each portion but the last, and a copier at about that time; zombies come first."""
        portion = self.total // (kills + 1)
        for number in range(1, kills + 1):
            if len(self.zombies) * kills < zombies * number and not self.groups:
                self._outlive_a_zombie(portion * number // PARTITIONS)
            self._fill_all(portion * number)
            self._await(portion * number - portion // 2)
            time.sleep(self.random.uniform(0, 0.2))
            self._kill_a_copier(0.3)
            self.numbers.broker_kills += self.place.kill(self.random)
            self._kill_a_copier(0.3)
            self.say(f"kill {number}/{kills}: {self.reader.count} of {self.total} records copied and read")

    def _kill_a_copier(self, chance: float) -> None:
        running = [number for number, copier in self.copiers.items() if copier.running]
        if running and self.random.random() < chance:
            number = self.random.choice(running)
            self.copiers[number].kill()
            self._replace(number)
            self.numbers.copier_kills += 1

    def _outlive_a_zombie(self, count: int) -> None:
        """Fill a partition to `count`, freeze its copier within a transaction, let a successor work, and thaw it.

        Its request for the end of the transaction arrives late, when the successor is about to end one.
        """
        number = self._next_zombie()
        transactional_id = f"copier-{number}"
        held = self.place.gate.held
        before = held[transactional_id]

        def is_held(times: int) -> bool:
            self._look_after()
            return held[transactional_id] >= before + times

        with self.place.gate.closed(transactional_id):
            self._fill(number, count)
            eventually(lambda: is_held(1), f"the end of a transaction of {transactional_id}", PROGRESS_DEADLINE_S)
            self.copiers[number].freeze()
            zombie = self._replace(number)
            self.zombies.append(zombie)
            try:
                eventually(lambda: is_held(2), f"a transaction of {self.copiers[number].said()}", PROGRESS_DEADLINE_S)
            finally:
                zombie.thaw()

    def _next_zombie(self) -> int:
        """Of the kind of copiers that was frozen least."""

        def kind(number: int) -> str:
            copier = self.copiers.get(number)
            return copier.kind if copier is not None and copier.running else self._next_kind(number, copier)

        kinds = Counter(zombie.kind for zombie in self.zombies)
        partitions = Counter(zombie.task.transactional_id for zombie in self.zombies)
        return min(range(PARTITIONS), key=lambda n: (kinds[kind(n)], partitions[f"copier-{n}"], n))

    def _bury_zombies(self) -> None:
        """They were asked to stop, and have said so."""
        for zombie in self.zombies:
            self.numbers.zombies[zombie.kind] += 1
            if not zombie.is_fenced():
                self.problems.append(f"a zombie was not fenced: {zombie.said()}")

    # --- the end

    def _finish(self) -> None:
        """Copiers of a partition end by themselves; members of a group must be asked."""
        if not self.groups:

            def all_done() -> bool:
                self._look_after()
                return not any(copier.running for copier in self.copiers.values())

            eventually(all_done, "the end of the copiers", PROGRESS_DEADLINE_S)
        for copier in self.copiers.values():
            copier.kill()

    def _judge(self) -> list[str]:
        bootstrap = self.place.bootstrap
        partitions = range(PARTITIONS)
        final = read_to_end(bootstrap, TARGET, partitions, "read_committed")
        self.java_reader.has(sum(map(len, final.values())))
        places = [(SOURCE, part) for part in partitions]
        copying = Copying(
            inputs=self.inputs,
            log=read_to_end(bootstrap, TARGET, partitions, "read_uncommitted"),
            committed=final,
            observed={part: [self.reader.seen(part), self.java_reader.seen(part)] for part in partitions},
            commit_called=self._commit_called(),
            positions=dict(zip(partitions, committed(bootstrap, GROUP, places), strict=True)),
        )
        self.problems += check(copying)
        self.problems += self._check_versions()
        self.problems += self.reader.failures
        for who in self.place.each_leads(TARGET):
            for isolation, expected in (("read_committed", final), ("read_uncommitted", copying.log)):
                found = read_to_end(bootstrap, TARGET, partitions, isolation)
                self.problems += [] if found == expected else [f"{who} gives {isolation} readers something else"]
        self.problems += self.place.stop_and_check()
        self._say_numbers(copying)
        return self.problems

    def _check_versions(self) -> list[str]:
        found, expected = used(self.place.bootstrap), {0, self.version if self.version == EPOCH_BUMP_FROM else 0}
        return [] if found == expected else [f"transactions are of versions {found}, not {expected}"]

    def _commit_called(self) -> dict[str, int]:
        """Of the records that a confluent copier, and no Java one, has had in its hands."""
        called: dict[str, int] = {}
        for copier in (*self.ended, *self.copiers.values()):
            for (partition, number), time_ns in copier.commit_called.items():
                if self.groups or JAVA not in KINDS[partition]:
                    value = self.inputs[partition][number]
                    called[value] = min(time_ns, called.get(value, time_ns))
        return {} if self.groups else called

    def _say_numbers(self, copying: Copying) -> None:
        in_log = sum(map(len, copying.log.values()))
        kept = sum(map(len, copying.committed.values()))
        n = self.numbers
        self.say(
            f"{self.total} records in, {kept} out, {in_log - kept} aborted in the log; {n.broker_kills} kills of the "
            f"broker, {n.copier_kills} of copiers, zombies fenced: {dict(n.zombies)}, copiers that gave up: {n.gave_up}"
        )
        if in_log == kept:
            self.problems.append("nothing was aborted: the readers had nothing to be kept from")


def _place(options: argparse.Namespace, directory: Path, connect: str | None) -> Place:
    if not options.cluster:
        keys = {**OVERRIDES, **WITHOUT_FEATURES} if options.transaction_version < EPOCH_BUMP_FROM else OVERRIDES
        return OneBroker(Broker(options.broker, directory / "broker", connect, keys))
    assert connect is not None
    return Replicated(Cluster(directory / "brokers", connect, [options.broker] * 3, Replicated.PROPERTIES))


def main(arguments: list[str]) -> int:
    parser = soak_parser("Copy exactly once while everything dies, and check what came out.", kills=20)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--zombies", type=int, default=6)
    parser.add_argument("--groups", action="store_true", help="the copiers are members of one group")
    parser.add_argument("--cluster", action="store_true", help="three brokers on a real ZooKeeper")
    add_transaction_version(parser)
    options = parser.parse_args(arguments)
    check_transaction_version(parser, options)
    say(f"{options.records} records, {options.kills} kills of {options.broker}, seed {options.seed}")
    directory = Path(tempfile.mkdtemp(prefix="eos-"))
    needs_zookeeper = options.zookeeper or options.cluster or options.broker == "kafka"
    with connect_string(directory, "eos", needed=needs_zookeeper) as connect:
        place = _place(options, directory, connect)
        try:
            place.start()
            version: int = options.transaction_version
            soak = Soak(place, options.seed, options.records, groups=options.groups, version=version, say=say)
            problems = soak.run(options.kills, options.zombies)
        finally:
            place.close()
    return report(problems, directory, options, "exactly once")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
