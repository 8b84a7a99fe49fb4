"""A broker behind a gate, a Flink, the clicks that are written, and what is found in the topics that the job writes."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewPartitions

from compat_tests.clients.transactions.test_transactions import rows
from compat_tests.conftest import Launcher
from compat_tests.eos.gate import Gate
from compat_tests.eos.readers import messages_to_end
from compat_tests.field.flink.recount import SPAN_MS, WINDOW_MS, Click, make_clicks, numbered, windows
from compat_tests.field.flink.standalone import Job, Standalone
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

PARTITIONS = 3
USERS_OF_ONE = 4
CLICKS_OF_ONE = 40
"""Users of one partition, and clicks there in one round."""
GROUP = "tally"
OUTPUTS = ("numbered", "windows")
NEVER_MS = 30 * 86_400_000
TRANSACTION_MS = 600_000
DEADLINE_S = 180.0
SETTINGS = {
    "transaction_state_log_num_partitions": "4",
    "offsets_topic_num_partitions": "4",
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "500",
}
ENDED = {"Empty", "CompleteCommit", "CompleteAbort"}


class Scene:
    """Written `clicks`, in the order of each partition; a user's are all in one."""

    def __init__(self, broker: Broker, gate: Gate, flink: Standalone, seed: int) -> None:
        self.broker = broker
        self.gate = gate
        self.flink = flink
        self.clicks: list[Click] = []
        self.partitions = PARTITIONS
        self._job: Job
        self._rounds = 0
        self._random = Random(seed)
        self._begin_ms = int(time.time() * 1000) - 3_600_000
        quick.create_topic(broker.bootstrap, "clicks", PARTITIONS)
        for topic in OUTPUTS:
            quick.create_topic(broker.bootstrap, topic, PARTITIONS)

    def run(
        self,
        parallelism: int,
        naming: str,
        restore: str | None = None,
        checkpoint_ms: int = NEVER_MS,
        transaction_ms: int = TRANSACTION_MS,
    ) -> Job:
        times = (checkpoint_ms, transaction_ms, SPAN_MS, WINDOW_MS)
        arguments = (self.broker.bootstrap, GROUP, *map(str, times), naming)
        self._job = self.flink.run(parallelism, *arguments, restore=restore)
        return self._job

    def click(self) -> None:
        """One round of clicks in every partition."""
        begin_ms = self._begin_ms + self._rounds * SPAN_MS
        self._rounds += 1
        for partition in range(self.partitions):
            users = [f"user-{partition}-{n}" for n in range(USERS_OF_ONE)]
            clicks = make_clicks(users, CLICKS_OF_ONE, len(self.clicks), begin_ms, self._random)
            values, times = [click.value for click in clicks], [click.time_ms for click in clicks]
            quick.fill(self.broker.bootstrap, "clicks", values, partition, times)
            self.clicks += clicks

    def click_and_see(self) -> None:
        """A round, and wait until the job has written all of it, in transactions that are open."""
        before = len(self.read("numbered", "read_uncommitted"))
        self.click()
        self.has_written(before + self.partitions * CLICKS_OF_ONE)

    def has_written(self, count: int) -> None:
        """Wait until `numbered` has so many records, or more, committed or not."""
        self._has(count, "read_uncommitted")

    def has_committed(self) -> None:
        """Wait until every click so far is there for a `read_committed` reader, or more than that."""
        self._has(len(self.clicks), "read_committed")

    def _has(self, count: int, isolation: str) -> None:
        def enough() -> bool:
            found = len(self.read("numbered", isolation))
            assert found >= count, f"{found} of {count}"
            return True

        try:
            eventually(enough, f"{count} records in numbered, {isolation}", DEADLINE_S)
        except AssertionError as missing:
            said = f"{self.transactions()}\n{self._job.cause()}\n{self.flink.tail()}"
            raise AssertionError(f"{missing}\n{said}") from None

    def read(self, topic: str, isolation: str = "read_committed") -> list[tuple[str, str]]:
        """Keys and values, in order within each partition, by librdkafka."""
        found = messages_to_end(self.broker.bootstrap, topic, range(PARTITIONS), isolation)
        return [(m.key().decode(), m.value().decode()) for messages in found.values() for m in messages]

    def add_partition(self) -> None:
        """One more of the topic that the job reads."""
        self.partitions += 1
        admin = quick.admin_client(self.broker.bootstrap)
        asked = admin.create_partitions([NewPartitions("clicks", self.partitions)], request_timeout=quick.DEADLINE_S)
        asked["clicks"].result(quick.DEADLINE_S)

    def check_numbered(self, missing: Collection[str] = ()) -> None:
        """Each click is there once, in its user's order, with its number; of `missing` only its number was used."""
        found: dict[str, list[str]] = defaultdict(list)
        for user, value in self.read("numbered"):
            found[user].append(value)
        expected = numbered(self.clicks)
        assert found == {
            user: [value for value in values if value.partition("@")[0] not in missing]
            for user, values in expected.items()
        }

    def check_windows(self) -> None:
        """Each window is there once. All must be past, as they are after `flink stop --drain`."""
        assert Counter(self.read("windows")) == windows(self.clicks)

    def check_group(self) -> None:
        """The group has committed the end of each partition: it does so when a checkpoint is complete."""
        places = [("clicks", partition) for partition in range(self.partitions)]
        ends = [quick.end_offset(self.broker.bootstrap, *place) for place in places]

        def is_at_the_end() -> bool:
            found = quick.committed(self.broker.bootstrap, GROUP, places)
            assert found == ends, f"{found}, not {ends}"
            return True

        eventually(is_at_the_end, "the group's offsets", DEADLINE_S)

    def transactions(self) -> dict[str, str]:
        """The states of the job's transactions by transactional id, as `kafka-transactions list` says them."""
        found = rows(Tools("3.9.1", self.broker.bootstrap).run("transactions", "list").out)
        return {row["TransactionalId"]: row["TransactionState"] for row in found}

    def check_nothing_hangs(self) -> None:
        """All transactions have ended, no partition has one that no coordinator knows, and none is held back."""
        assert set(self.transactions().values()) <= ENDED, self.transactions()
        tools = Tools("3.9.1", self.broker.bootstrap)
        hanging = tools.run("transactions", "find-hanging", "--broker-id", str(self.broker.node_id))
        assert rows(hanging.out) == [], str(hanging)
        for topic in OUTPUTS:
            assert self.is_open(topic) is False, topic

    def is_open(self, topic: str) -> bool:
        """Whether a partition has records after its last stable offset."""
        ends = []
        for isolation in ("read_committed", "read_uncommitted"):
            settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": "none", "isolation.level": isolation}
            consumer = Consumer({**settings, **quick.QUIET})
            places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
            ends.append([consumer.get_watermark_offsets(place, quick.DEADLINE_S)[1] for place in places])
            consumer.close()
        return ends[0] != ends[1]


@contextmanager
def scene(launcher: Launcher, version: str, directory: Path, seed: int) -> Iterator[Scene]:
    """All of it started, and ended afterwards. The gate is first: Kafka's controller reaches its broker through it."""
    gate, door = Gate(), free_port()
    broker = launcher.unstarted(**SETTINGS, advertised_listeners=f"PLAINTEXT://127.0.0.1:{door}")
    broker.client_port = door
    gate.lead(door, broker.port)
    flink = Standalone(version, directory)
    try:
        broker.start()
        made = Scene(broker, gate, flink, seed)
        flink.start()
        yield made
    finally:
        flink.kill()
        broker.service.kill()
        gate.close()
