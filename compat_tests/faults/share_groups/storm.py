"""Share groups under kills: `make soak-share`.

    python -m compat_tests.faults.share_groups.storm --kills 10 --seed 7 [--brokers 3] [--mixed] [--keep-files]

Members accept, release, reject and say nothing; brokers are killed and started again; at the end the members accept all
that is left, and the history of all of it is judged by `check`. With three brokers each partition has three replicas,
and so have the groups' and the share coordinators' topics.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat_tests.faults.share_groups.check import Problem, check
from compat_tests.faults.share_groups.foreign import Foreign, members
from compat_tests.faults.share_groups.history import ShareHistory, Span
from compat_tests.faults.share_groups.member import Member, Settings
from compat_tests.overload.raw import Raw
from compat_tests.support.cluster import PROPERTIES, Cluster
from compat_tests.support.groups.serving import QUICK
from compat_tests.support.quick import admin_client, create_topic, end_offset, read
from compat_tests.support.services import Broker, ZooKeeper
from compat_tests.support.soaks import report, say, soak_parser
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest

GROUP, TOPIC, PARTITIONS, MEMBERS = "work", "jobs", 3, 4
LOCK_MS, DELIVERY_COUNT_LIMIT = 2000, 5
MIXED_LOCK_MS = 10_000
"""With members of other clients: those that start in a JVM take a second for their first records."""
RECORDS_A_KILL, CALM_S = 1500, 3.0
DRAIN_S, END_S = 60.0, 30.0
FOREIGN_END_S = 120.0
KEYS = {
    **{key.replace("_", "."): value for key, value in QUICK.items()},
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": str(DELIVERY_COUNT_LIMIT),
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "kpybroker.new.cluster.features": "newest",
}
OF_THREE = {
    **PROPERTIES,
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "2500",
    "zookeeper.session.timeout.ms": "2500",
}


class Brokers(NamedTuple):
    """The brokers of a storm, and what ends them for good."""

    brokers: Sequence[Broker]
    close: Callable[[], None]

    @property
    def bootstrap(self) -> str:
        """All of them: some may be dead."""
        return ",".join(broker.bootstrap for broker in self.brokers)


def start(directory: Path, count: int, lock_ms: int = LOCK_MS) -> Brokers:
    """One broker with a tree of its own, or a cluster on ZooKeeper."""
    keys = {**KEYS, "group.share.record.lock.duration.ms": str(lock_ms)}
    if count == 1:
        alone = {
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }
        broker = Broker("kpybroker", directory / "broker", None, {**keys, **alone})
        broker.start()
        return Brokers([broker], broker.service.kill)
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    cluster = Cluster(directory, f"{zookeeper.connect}/share", ["kpybroker"] * count, {**keys, **OF_THREE})
    cluster.start()

    def close() -> None:
        cluster.close()
        zookeeper.stop()

    return Brokers(list(cluster.brokers.values()), close)


class Storm:
    """One run. `kills` brokers die, one after the other."""

    def __init__(self, brokers: Brokers, seed: int, tell: Callable[[str], None], lock_ms: int = LOCK_MS) -> None:
        self.history = ShareHistory(lock_ms, DELIVERY_COUNT_LIMIT)
        self._brokers, self._random, self._tell = brokers, Random(seed), tell
        addresses = [("127.0.0.1", broker.port) for broker in brokers.brokers]
        self._settings = Settings(addresses, GROUP, TOPIC, lock_ms / 1000)
        self._members: list[Member | Foreign] = [
            Member(f"member-{n}", self._settings, self.history, Random(f"{seed}-{n}")) for n in range(MEMBERS)
        ]

    def play(self, kills: int, foreign_directory: Path | None = None) -> list[Problem]:
        """Everything that was wrong. With a directory there are members of other clients, whose files are there."""
        create_topic(self._brokers.bootstrap, TOPIC, PARTITIONS, len(self._brokers.brokers))
        self._begin_at_start()
        if foreign_directory is not None:
            self._members += members(self._settings, self.history, foreign_directory)
        for member in self._members:
            member.start()
        self._produce(RECORDS_A_KILL)
        for number in range(kills):
            if self._is_beyond_limit():
                break
            time.sleep(self._random.uniform(0.2, CALM_S))
            self._kill(self._random.choice(self._brokers.brokers), number)
            self._produce(RECORDS_A_KILL)
        for member in self._members:
            member.drains.set()
        with suppress(AssertionError):
            eventually(lambda: self._is_beyond_limit() or self._is_drained(), "the group has read everything", DRAIN_S)
            self.history.is_drained = not self._is_beyond_limit()
        for member in self._members:
            member.ends.set()
        for member in self._members:
            member.join(FOREIGN_END_S if isinstance(member, Foreign) else END_S)
            if member.is_alive():
                self.history.failures.append(f"{member.name} does not end")
        self._read_log()
        counts = len(self.history.deliveries), len(self.history.acknowledgements), len(self.history.lost)
        for member in self._members:
            if isinstance(member, Foreign) and not member.count:
                self.history.failures.append(f"{member.name} was given nothing")
        self._tell("{} deliveries, {} acknowledgements, {} lost fetches".format(*counts))
        return check(self.history)

    def _begin_at_start(self) -> None:
        entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=[entry])
        admin = admin_client(self._brokers.bootstrap)
        admin.incremental_alter_configs([resource])[resource].result(timeout=END_S)

    def _produce(self, count: int) -> None:
        producer = Producer(
            {"bootstrap.servers": self._brokers.bootstrap, "linger.ms": 5, "enable.idempotence": True, "log_level": 0}
        )
        for number in range(count):
            producer.produce(TOPIC, b"%d.%d" % (time.monotonic_ns(), number), partition=number % PARTITIONS)
            producer.poll(0)
        left = producer.flush(END_S * 2)
        if left:
            self.history.failures.append(f"{left} records were not written")

    def _kill(self, broker: Broker, number: int) -> None:
        self._tell(f"kill {number + 1}: broker {broker.node_id}")
        from_ns = time.monotonic_ns()
        broker.kill()
        broker.start()
        # until then leaders may change, and with them whom a lock is with
        self.history.disturbances.append(Span(from_ns, time.monotonic_ns() + int(CALM_S * 1e9)))

    def _is_beyond_limit(self) -> bool:
        """Whether a record was delivered too often: a group that goes on so never comes to its end."""
        return any(one.times > DELIVERY_COUNT_LIMIT for one in list(self.history.deliveries))

    def _is_drained(self) -> bool:
        """Every partition's start offset is its end."""
        topic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(
            topic_name=TOPIC, partitions=list(range(PARTITIONS))
        )
        group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[topic])
        try:
            with Raw(self._settings.addresses[0], END_S) as raw:
                find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
                found = raw.ask(find, 4).coordinators[0]
            with Raw((found.host, found.port), END_S) as raw:
                response = raw.ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1)
        except (OSError, EOFError):
            return False
        (described,) = response.groups
        partitions = [one for each in described.topics for one in each.partitions]
        is_known = described.error_code == ErrorCode.NONE and len(partitions) == PARTITIONS
        return is_known and all(one.error_code == ErrorCode.NONE and one.lag == 0 for one in partitions)

    def _read_log(self) -> None:
        bootstrap = self._brokers.bootstrap
        ends = {index: end_offset(bootstrap, TOPIC, index) for index in range(PARTITIONS)}
        for message in read(bootstrap, [(TOPIC, index) for index in ends], sum(ends.values())):
            log = self.history.log.setdefault((TOPIC, message.partition()), {})
            log[message.offset()] = message.value()


def run(
    directory: Path,
    seed: int,
    kills: int,
    brokers: int = 1,
    tell: Callable[[str], None] = say,
    *,
    is_mixed: bool = False,
) -> list[Problem]:
    """Start the brokers, play a storm, end them. `is_mixed`: members of other clients are in the group too."""
    lock_ms = MIXED_LOCK_MS if is_mixed else LOCK_MS
    started = start(directory, brokers, lock_ms)
    try:
        return Storm(started, seed, tell, lock_ms).play(kills, directory if is_mixed else None)
    finally:
        started.close()


def main() -> int:
    """The command."""
    parser = soak_parser("Share groups while brokers are killed.", kills=10)
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--mixed", action="store_true", help="members of Java, franz-go and confluent-kafka too")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="share-storm-"))
    found = run(directory, options.seed, options.kills, options.brokers, is_mixed=options.mixed)
    problems = [str(problem) for problem in found]
    return report(problems, directory, options, "each record was delivered, and accepted once or given up by the rules")


if __name__ == "__main__":
    sys.exit(main())
