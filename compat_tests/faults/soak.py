"""`make soak-cluster`: three brokers on ZooKeeper under a seeded storm of faults, and nothing may be lost.

    python -m compat_tests.faults.soak --seeds 20 --minutes 10 --seed 1 --broker kpybroker --others franz aiokafka-txn
        --transaction-version 1

Clients of every kind write, copy, read and commit all along; applications with members of groups of both protocols
(`groups/`) are killed and stand still themselves. A round of faults is followed by a quiet time in which the
cluster must become whole again and every writer must get on. In the end all is read and held against the history
(`check.py`), and the replicas' files must be equal. A run that fails leaves its files and names its seed.
"""

from __future__ import annotations

import argparse
import faulthandler
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from compat_tests.cluster.traffic import wait_for_equal_logs
from compat_tests.eos.transaction_log import completed
from compat_tests.faults.check import Problem, check
from compat_tests.faults.clients.copying import Copying
from compat_tests.faults.clients.housekeeping import ADMIN_S, TRIMMED, Housekeeping
from compat_tests.faults.clients.others import ROLES as OTHERS
from compat_tests.faults.clients.others import Others
from compat_tests.faults.clients.readers import Follower, Member, read_log
from compat_tests.faults.clients.transacting import Transacting
from compat_tests.faults.clients.watchers import (
    GROUP_PARTITIONS,
    GROUP_TOPIC,
    GroupWatch,
    Prober,
    StateWatcher,
    Watcher,
    heard_states,
)
from compat_tests.faults.clients.writers import JavaWriter, Target, Task, TransactionalWriter, Writer
from compat_tests.faults.cluster import BROKERS, MAIN, SPREAD, BrokerEnded, FaultyCluster
from compat_tests.faults.faults import FAULTS, Roles
from compat_tests.faults.groups.applications import GROUPS, Applications
from compat_tests.faults.groups.beats import LISTENING, beats_of
from compat_tests.faults.groups.check import check_groups
from compat_tests.faults.groups.history import GroupProtocol
from compat_tests.faults.groups.watcher import GroupWatcher
from compat_tests.faults.history import History, Partition, Reader
from compat_tests.faults.rounds import LENGTH_S, plan, play
from compat_tests.faults.scenarios import GROUP, SCENARIOS
from compat_tests.support.quick import admin_client
from compat_tests.support.soaks import add_transaction_version, check_transaction_version
from compat_tests.support.tools import VERSIONS
from compat_tests.support.waiting import eventually
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM

PARTITIONS: list[Partition] = [(MAIN, index) for index in range(len(SPREAD))]
WATCHED: list[Partition] = [*PARTITIONS, (TRIMMED, 0)]
TOPICS = {MAIN: 3, TRIMMED: 1, "source": 2, "target": 2, "__consumer_offsets": 2, "__transaction_state": 2}
PROGRESS = 20
"""Acknowledgements that every writer must get in a quiet time."""
PROGRESS_S = 150.0
END_S = 180.0
ELECTIONS = 0.6
IMPATIENT = {"max_block_ms": "30000", "request_timeout_ms": "5000", "delivery_timeout_ms": "30000"}
"""Settings of a Java client that is replaced when it does not get on."""


@dataclass(frozen=True, slots=True)
class Storm:
    """So many `seconds` on brokers of a kind, of all faults or `only` these, with `others` as clients.

    `groups` are those of the applications, in addition to the one that is always there. `transaction_version` is that
    of clients that know both: Java's, and franz-go's where that is one of the others.
    """

    kind: str
    seconds: float
    only: Collection[str] = ()
    length_max_s: float = LENGTH_S[1]
    others: Collection[str] = ()
    groups: Mapping[str, GroupProtocol] = field(default_factory=lambda: GROUPS)
    transaction_version: int = EPOCH_BUMP_FROM


class Run:
    """One seed on one cluster."""

    def __init__(self, storm: Storm, directory: Path, seed: int, say: Callable[[str], None]) -> None:
        self.storm = storm
        self.random = Random(seed)
        self.history = History()
        self.began = time.monotonic()
        self._say = say
        self.cluster = FaultyCluster(storm.kind, directory, self.history, storm.transaction_version)
        self.housekeeping = Housekeeping(self.cluster, self.history, self.random)
        self._directory = directory
        self._tasks: list[Task] = []

    def say(self, text: str) -> None:
        self._say(f"{time.monotonic() - self.began:6.1f}  {text}")

    def run(self) -> list[Problem]:
        """Everything that is wrong. The cluster is left running."""
        only = self.storm.only
        self.cluster.start()
        self.housekeeping.create({MAIN: SPREAD, TRIMMED: SPREAD[:1], "source": SPREAD[:2], "target": SPREAD[:2]})
        self._start_clients()
        try:
            self._quiet("to begin with")
            self.housekeeping.make_again()
            end = time.monotonic() + self.storm.seconds
            while time.monotonic() < end and not self.history.failures:
                planned = plan(self.cluster, self._roles(), self.random, only, self.storm.length_max_s)
                self.history.failures += play(planned, self.say)
                if not self.history.failures:
                    self._quiet("after the storm")
        except (AssertionError, KafkaException, BrokerEnded) as error:
            self.history.failures.append(str(error))
        failed_in_a_scenario = self.history.failures and SCENARIOS.keys() & set(only)
        if failed_in_a_scenario or not self._becomes_whole():
            return check(History(failures=self.history.failures))
        if found := self._problems_of_groups(is_over=False):
            return [*check(History(failures=self.history.failures)), *found]  # some may never read to the end then
        self._finish()
        return [*check(self.history), *self._problems_of_groups(is_over=True)]

    def close(self) -> None:
        if self._tasks:
            self.copying.kill()
            self.java.kill()
            self.java_transactions.kill()
            self.others.kill()
            self.applications.roller.stopping.set()
            self.applications.kill()
        for task in self._tasks:
            task.stopping.set()
        self.cluster.close()

    # --- clients

    def _start_clients(self) -> None:
        history, bootstrap = self.history, self.cluster.bootstrap
        main = Target(bootstrap, MAIN, len(SPREAD))
        self.writer = Writer("librdkafka", history, main, rate=60)
        self.transactional = TransactionalWriter("tx", history, main, 8, self._seed(), self.say)
        self.java = JavaWriter(7, history, main, 60, self._directory)
        self.java_transactions = Transacting("java-4.3.1", history, main, **IMPATIENT)
        self.feeder = Writer("feeder", history, Target(bootstrap, "source", 2), rate=20)
        self.others = Others(self.storm.others, history, bootstrap, PARTITIONS, self._directory)
        self.copying = Copying(bootstrap, self._seed(), self.say, VERSIONS[self.cluster.transaction_version - 1])
        self.followers = [
            Follower(history, bootstrap, PARTITIONS, isolation) for isolation in ("read_uncommitted", "read_committed")
        ]
        self.group = Reader("the group", committed_only=True, reads={p: [] for p in PARTITIONS}, is_shared=True)
        history.readers.append(self.group)
        self.members = [Member(f"member-{n}", history, bootstrap, MAIN, GROUP, self.group) for n in range(2)]
        ports = {broker_id: broker.port for broker_id, broker in self.cluster.brokers.items()}
        self.probers = [Prober(history, broker_id, port, PARTITIONS) for broker_id, port in ports.items()]
        offsets = [(GROUP_TOPIC, index) for index in range(GROUP_PARTITIONS)]
        self.states = StateWatcher(history, self.cluster.tree_address, [*PARTITIONS, *offsets])
        self.watchers = [
            Watcher(history, broker_id, port, WATCHED, GroupWatch(GROUP, PARTITIONS, lambda: self.members[0].member_id))
            for broker_id, port in ports.items()
        ]
        self._make_applications()
        self.group_watchers = [
            GroupWatcher(history, broker_id, port, list(self.applications.groups.values()), PARTITIONS)
            for broker_id, port in ports.items()
        ]
        self._tasks = [
            *(self.states, *self.watchers, *self.group_watchers, *self.followers, *self.members),
            *(self.writer, self.transactional, self.java, self.java_transactions, self.feeder, *self.probers),
        ]
        for task in self._tasks:
            task.start()
        self.others.start()
        self.applications.start()

    def _make_applications(self) -> None:
        groups = self.storm.groups
        if not self.cluster.serves_features:
            groups = {name: protocol for name, protocol in groups.items() if protocol is GroupProtocol.CLASSIC}
        self.applications = Applications(groups, self.history, self.cluster.bootstrap, PARTITIONS, self._directory)
        self.cluster.applications = self.applications.all
        self.cluster.network.listening = LISTENING

    def _seed(self) -> int:
        return self.random.randrange(2**30)

    def _counts(self) -> dict[str, int]:
        return {
            "librdkafka": self.writer.acknowledged,
            "Java": self.java.acknowledged,
            "transactions": self.transactional.ended * 4,
            "Java's": self.java_transactions.committed * len(SPREAD) * 2,
            "copied": self.copying.reader.count,
            **self.others.counts(),
            **self.applications.counts(),
        }

    # --- the course of things

    def _roles(self) -> Roles:
        """Asked for when the cluster is whole."""
        tree = self.cluster.cluster
        internal = [(topic, index) for topic in ("__consumer_offsets", "__transaction_state") for index in range(2)]
        return Roles(
            [tree.state(*partition).leader for partition in PARTITIONS],
            [tree.state(*partition).leader for partition in internal],
            tree.controller() or BROKERS[0],
        )

    def _quiet(self, when: str) -> None:
        """The cluster becomes whole, everybody gets on, and some housekeeping is done."""
        before = self._counts()
        self.cluster.activate()
        self.applications.activate()
        self.cluster.wait_for_full_isr(self._existing())
        self.copying.look_after()

        def all_got_on() -> bool:
            self.copying.look_after()
            if self.history.failures:
                return True  # that is the end of it: see `run`
            now = self._counts()
            assert all(now[name] >= before[name] + PROGRESS for name in now), f"{before} -> {now}"
            return True

        eventually(all_got_on, f"every writer gets on, {when}", PROGRESS_S)
        self.housekeeping.trim()
        if self.random.random() < ELECTIONS:
            self.housekeeping.elect()
        self.say(f"quiet: {self._counts()}")

    def _existing(self) -> dict[str, int]:
        names = set(self.cluster.cluster.tree.get_children("/brokers/topics"))
        return {topic: count for topic, count in TOPICS.items() if topic in names}

    # --- the end

    def _problems_of_groups(self, *, is_over: bool) -> list[Problem]:
        names = {self.cluster.topic_id(MAIN): MAIN}
        beats = beats_of(list(self.cluster.network.exchanges), names)
        groups = self.applications.groups
        for name, group in groups.items():
            group.beats = beats[name]
        return check_groups(groups.values(), self.history.states, is_over=is_over)

    def _becomes_whole(self) -> bool:
        try:
            self.cluster.activate()
            self.applications.activate()
            self.cluster.wait_for_full_isr(self._existing())
        except (AssertionError, BrokerEnded) as error:
            self.history.failures.append(f"at the end: {error}")
            return False
        return True

    def _finish(self) -> None:
        """Writers end, everybody reads to the end, and all is read once more."""
        writers = (
            self.writer,
            self.java,
            self.transactional,
            self.java_transactions,
            self.feeder,
            *self.others.writers,
        )
        for task in (*self.probers, *writers):
            task.stop()
            self.say(f"{task.name} has ended")
        for failure in self.history.failures:
            self.say(f"FAILURE {failure}")
        try:
            self._read_all()
            self.say("the log is read; now for the readers")
            self._wait_for_readers()
            self.say("the readers have finished; now for the copier")
            self.history.failures += self.copying.judge(self.cluster.bootstrap)
            for topic, index in PARTITIONS:
                wait_for_equal_logs(list(self.cluster.brokers.values()), topic, index)
        except AssertionError as error:
            self.history.failures.append(f"at the end: {error}")
        self.applications.roller.stop()
        self.applications.kill()
        readers = (*self.members, *self.followers, *self.others.members)
        for task in (*self.watchers, *self.group_watchers, self.states, *readers):
            task.stop()
        self._look_at_commits(GROUP, self.history.commits_found)
        for name, group in self.applications.groups.items():
            self._look_at_commits(name, group.commits_found)
        self._look_at_logs()
        self._look_at_versions()
        self.say(f"the end: {self._counts()}, {self._numbers()}")

    def _read_all(self) -> None:
        history, bootstrap = self.history, self.cluster.bootstrap
        for topic, count in ((MAIN, len(SPREAD)), ("source", 2)):
            history.log |= read_log(bootstrap, topic, count, "read_uncommitted")
        history.committed |= read_log(bootstrap, MAIN, len(SPREAD), "read_committed")

    def _wait_for_readers(self) -> None:
        main = {partition: self.history.log[partition] for partition in PARTITIONS}
        committed = {partition: self.history.committed[partition] for partition in PARTITIONS}
        for follower in self.followers:
            wanted = committed if follower.reader.committed_only else main
            eventually(lambda: follower.has_all(wanted), f"{follower.name} has read all", END_S)
            follower.reader.finished = True
        eventually(lambda: self.members[0].has_all(committed), "the group has read all", END_S)
        self.group.finished = True
        offsets = {partition: {stored.offset for stored in log} for partition, log in committed.items()}
        self.others.wait_for_groups(offsets, END_S)
        self.applications.wait_for_groups(offsets, END_S)

    def _look_at_commits(self, group: str, into: dict[Partition, int]) -> None:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(*partition) for partition in PARTITIONS])
        admin = admin_client(self.cluster.bootstrap)

        def tell() -> bool:  # on a busy machine a session expires in quiet times as well, and a coordinator moves
            (found,) = admin.list_consumer_group_offsets([wanted], request_timeout=ADMIN_S).values()
            try:
                places = found.result(timeout=ADMIN_S).topic_partitions
            except KafkaException as error:
                raise AssertionError(str(error)) from error
            into.update({(place.topic, place.partition): place.offset for place in places})
            return True

        eventually(tell, f"the coordinator of {group} reports what it committed", END_S)

    def _look_at_logs(self) -> None:
        for broker in self.cluster.brokers.values():
            for partition, version, time_ns in heard_states(broker.service.log_file.read_text(errors="replace")):
                heard = self.history.heard[partition]
                heard[version] = min(time_ns, heard.get(version, time_ns))

    def _look_at_versions(self) -> None:
        expected = EPOCH_BUMP_FROM if self.cluster.transaction_version == EPOCH_BUMP_FROM else 0
        found = set(completed(self.cluster.bootstrap)[self.java_transactions.name])
        if found != {expected}:
            self.history.failures.append(f"Java's transactions are of versions {found}, not {expected}")

    def _numbers(self) -> str:
        history = self.history
        parts = {
            "records": sum(map(len, history.log.values())),
            "acknowledged": sum(map(len, history.acknowledged.values())),
            "refused": len(history.refused),
            "looks": sum(map(len, history.looks.values())),
            "commits": sum(map(len, history.commits_acknowledged.values())),
            "absences": len(history.absences),
            "responses lost": self.cluster.network.lost_responses.total(),
            "copiers replaced": self.copying.replaced,
            "looks at groups": sum(len(group.epoch_looks) for group in self.applications.groups.values()),
            "heartbeats": len(self.cluster.network.exchanges),
            "members rolled": self.applications.roller.restarts,
            "members gave up": self.applications.given_up,
        }
        return ", ".join(f"{count} {name}" for name, count in parts.items())


def run_seed(storm: Storm, seed: int, keep: Literal["all", "useful", "none"] = "useful") -> list[Problem]:
    """One run in a directory of its own, reported on stdout. Its files are of use if there are problems."""
    directory = Path(tempfile.mkdtemp(prefix="faults-"))
    faults = ", ".join(storm.only) or "all faults"
    print(f"--- seed {seed}, {storm.seconds:.0f} s of {faults} on {storm.kind}", flush=True)
    run = Run(storm, directory, seed, lambda text: print(text, flush=True))
    try:
        problems = run.run()
    finally:
        run.close()
    for problem in problems:
        print(f"PROBLEM {problem}")
    if keep == "all" or (problems and keep == "useful"):
        print(f"the files: {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"seed {seed}: {f'{len(problems)} problems' if problems else 'nothing lost'}", flush=True)
    return problems


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="A storm of faults on a cluster, and everything checked.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--broker", choices=["kpybroker", "kafka"], default="kpybroker")
    parser.add_argument("--only", nargs="*", choices=[*FAULTS, *SCENARIOS], default=[], help="faults to draw from")
    parser.add_argument("--others", nargs="*", choices=OTHERS, default=[], help="clients in addition to the usual ones")
    parser.add_argument("--keep-files", action="store_true")
    add_transaction_version(parser)
    options = parser.parse_args(arguments)
    faulthandler.register(signal.SIGUSR1)  # where every thread stands, for a run that does
    check_transaction_version(parser, options)
    storm = Storm(
        options.broker,
        options.minutes * 60,
        options.only,
        others=options.others,
        transaction_version=options.transaction_version,
    )
    keep: Literal["all", "useful"] = "all" if options.keep_files else "useful"
    seeds = range(options.seed, options.seed + options.seeds)
    failed = [seed for seed in seeds if run_seed(storm, seed, keep)]
    print(f"{options.seeds} seeds; problems with {failed}" if failed else f"{options.seeds} seeds: nothing lost")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
