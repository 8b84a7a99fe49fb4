"""kpybroker and Kafka 3.9.1 hand one data directory and one ZooKeeper tree to each other, turn after turn.

In its turn a broker finds what the one before it left (records, offsets, producers, transactions, configuration, ids),
goes on with all of it, and is stopped or killed; then its files are looked at. Whatever is wrong is in `problems`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from confluent_kafka import TopicPartition

from compat_tests.exchange import clients
from compat_tests.exchange.clients import DEADLINE_S, Sequenced, Written
from compat_tests.exchange.contents import Contents, Entry, Partition
from compat_tests.exchange.files import check_files, check_running
from compat_tests.exchange.seat import Seat
from compat_tests.support.clients import CODECS
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode

TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "codecs": (2, {}),
    "rolling": (1, {"segment.bytes": "20000", "index.interval.bytes": "200"}),
    "sequenced": (1, {"segment.bytes": "5000"}),
    "transactions": (2, {"segment.bytes": "9000", "index.interval.bytes": "100"}),
    "left": (1, {}),
    "grouped": (1, {}),
    "hot": (1, {"segment.bytes": "40000", "index.interval.bytes": "500"}),
    "compacted": (
        1,
        {"cleanup.policy": "compact", "segment.bytes": "6000", "min.cleanable.dirty.ratio": "0.01"},
    ),
}
OPEN_MS = 600_000  # on a busy machine the other broker may begin more than a minute later
KEYS = 15
HOT_RECORDS = 20_000
GROUPED_RECORDS = 30
GROUPED_READ = 20


@dataclass(slots=True)
class Exchange:
    """The two brokers' seat, and what ought to be found there."""

    seat: Seat
    seed: int
    is_thorough: bool = True
    say: Callable[[str], None] = print
    contents: Contents = field(default_factory=Contents)
    problems: list[str] = field(default_factory=list)
    turns: int = 0
    sequenced: Sequenced | None = None
    _random: Random = field(default_factory=Random)

    def turn(self, kind: str, end: str) -> None:
        """One broker's turn; `end` is how it ends, `stop` or `kill`."""
        self.turns += 1
        self._random.seed(self.seed * 1000 + self.turns)
        self.seat.start(kind)
        if self.turns == 1:
            self._create_topics()
        else:
            self._find_what_was_left()
        self._resume()
        self._read("after writing")
        self._blame(*check_running(self.seat.data_dir, self.contents.compacted))
        if end == "kill":
            self._kill_under_load()
        else:
            self.seat.stop(end)
        is_kafka, is_clean = kind == "kafka", end == "stop"
        found = check_files(self.seat.data_dir, self.contents.compacted, is_clean=is_clean, is_kafka=is_kafka)
        self._blame(*found)
        count = sum(map(len, self.contents.entries.values()))
        self.say(f"turn {self.turns}: {kind}, {end}: {count} records, {len(self.problems)} problems")

    def _blame(self, *problems: str) -> None:
        self.problems += [f"turn {self.turns}: {problem}" for problem in problems]

    def _expect(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self._blame(f"{what}: found {found}, expected {expected}")

    @property
    def _bootstrap(self) -> str:
        return self.seat.bootstrap

    @property
    def partitions(self) -> list[Partition]:
        return [(topic, index) for topic, count in self.contents.partition_counts.items() for index in range(count)]

    # --- what the broker before left

    def _find_what_was_left(self) -> None:
        self._find_topics()
        hot = clients.read_whole(self._bootstrap, [("hot", 0)], "read_uncommitted")[("hot", 0)]
        self.contents.adopt(("hot", 0), hot)
        self._read("left by the other")
        for group, offsets in self.contents.groups.items():
            self._expect(f"offsets of {group}", clients.committed(self._bootstrap, group, list(offsets)), offsets)
        self._find_producer()
        self._finish_left_transaction()
        if self.is_thorough:
            self._ask_tools()

    def _find_topics(self) -> None:
        expected = {
            topic: (self.contents.topic_ids[topic], count) for topic, count in self.contents.partition_counts.items()
        }

        def are_there() -> bool:
            """Kafka knows no topics for a moment after its start."""
            found = clients.topic_ids(self.seat.port)
            assert {name: found[name] for name in found if not name.startswith("__")} == expected
            return True

        eventually(are_there, "the topics, their ids and partitions", DEADLINE_S)
        for topic, config in self.contents.topic_configs.items():
            self._expect(f"configuration of {topic}", clients.overrides(self._bootstrap, topic), config)
        self._expect(
            "configuration of the broker", clients.overrides(self._bootstrap, None), self.contents.broker_configs
        )

    def _read(self, when: str) -> None:
        for isolation in ("read_uncommitted", "read_committed"):
            read = clients.read_whole(self._bootstrap, self.partitions, isolation)
            for partition in self.partitions:
                wrong = self.contents.differences(partition, isolation, read[partition])
                self._blame(*(f"{when}: {problem}" for problem in wrong))

    def _find_producer(self) -> None:
        """The last batch is known as a duplicate, a gap is refused, and the sequence goes on (in `_resume`)."""
        assert self.sequenced is not None
        again, offset = self.sequenced.repeat(("sequenced", 0))
        self._expect("offset of a duplicate", again, offset)
        error = self.sequenced.skip(("sequenced", 0))
        self._expect("error for a gap", error, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    def _finish_left_transaction(self) -> None:
        """The producer comes back, and with that its transaction is aborted."""
        if not self.contents.last_stable:
            return
        Written(self._bootstrap, transactional_id=f"left-{self.turns - 1}").producer.init_transactions(DEADLINE_S)
        self.contents.last_stable.clear()
        expected = self.contents.of(("left", 0), "read_committed")

        def is_aborted() -> bool:
            read = clients.read_whole(self._bootstrap, [("left", 0)], "read_committed")[("left", 0)]
            assert read == expected, f"{len(read)} records, not {len(expected)}"
            return True

        eventually(is_aborted, "the end of a transaction that the other broker began", DEADLINE_S)

    def _ask_tools(self) -> None:
        """Java clients read the same, and see the same offsets."""
        tools = Tools("3.9.1", self._bootstrap)
        expected = sorted(
            entry.value or ""
            for partition in (("transactions", 0), ("transactions", 1))
            for entry in self.contents.of(partition, "read_committed").values()
        )
        options = ("--topic", "transactions", "--from-beginning", "--isolation-level", "read_committed")
        limits = ("--max-messages", str(len(expected)), "--timeout-ms", "20000")
        self._expect(
            "a Java consumer's records", sorted(tools.run("console-consumer", *options, *limits).lines), expected
        )
        described = tools.run("consumer-groups", "--describe", "--group", "plain-group").out
        rows = [line.split()[1:4] for line in described.splitlines() if line.startswith("plain-group")]
        offset = self.contents.groups["plain-group"]["grouped", 0]
        self._expect("offsets by kafka-consumer-groups", rows, [["grouped", "0", str(offset)]])

    # --- what this broker adds

    def _create_topics(self) -> None:
        for topic, (count, config) in TOPICS.items():
            self._create(topic, count, config)
        self.contents.compacted.add("compacted")

    def _create(self, topic: str, count: int, config: dict[str, str]) -> None:
        clients.create(self._bootstrap, topic, count, config)
        self.contents.partition_counts[topic] = count
        self.contents.topic_configs[topic] = dict(config)
        self.contents.topic_ids[topic] = clients.topic_ids(self.seat.port)[topic][0]

    def _resume(self) -> None:
        self._change_topics()
        self._change_configs()
        self._write_codecs()
        self._write_sequenced()
        self._write_compacted()
        self._write_transactions()
        self._write_grouped()
        self._leave_transaction()

    def _change_topics(self) -> None:
        """A topic comes in each turn, grows in the next and goes in the one after."""
        self._create(f"made-{self.turns}", 1, {"retention.ms": "-1"})
        self._write(Written(self._bootstrap), (f"made-{self.turns}", 0), 10)
        before = f"made-{self.turns - 1}"
        if before in self.contents.partition_counts:
            clients.grow(self._bootstrap, before, 3)
            self.contents.partition_counts[before] = 3
            self._write(Written(self._bootstrap), (before, 2), 10)
        gone = f"made-{self.turns - 2}"
        if gone in self.contents.partition_counts:
            clients.delete(self._bootstrap, gone)
            del self.contents.partition_counts[gone], self.contents.topic_configs[gone]

    def _change_configs(self) -> None:
        for topic, key, value in (
            ("rolling", "max.message.bytes", str(1_000_000 + self.turns)),
            (None, "message.max.bytes", str(2_000_000 + self.turns)),
        ):
            clients.set_config(self._bootstrap, topic, key, value)
            place = self.contents.broker_configs if topic is None else self.contents.topic_configs[topic]
            place[key] = value

    def _entries(self, what: str, count: int) -> list[Entry]:
        return [
            Entry(
                f"k{n % 7}",
                f"{what} {self.turns}.{n} " + "æøå " * self._random.randrange(20),
                (("turn", str(self.turns)),),
            )
            for n in range(count)
        ]

    def _write(self, written: Written, partition: Partition, count: int, what: str = "plain") -> None:
        written.send(partition, self._entries(what, count))
        self._keep(written)

    def _keep(self, written: Written, *, committed: bool = True) -> None:
        for partition, offset, entry in written.flush():
            self.contents.add(partition, offset, entry, committed=committed)

    def _write_codecs(self) -> None:
        for codec in CODECS:
            written = Written(self._bootstrap, enable_idempotence=True, compression_type=codec, batch_num_messages=25)
            for index in range(2):
                self._write(written, ("codecs", index), 60, codec)
            self._write(written, ("rolling", 0), 120, codec)

    def _write_sequenced(self) -> None:
        if self.sequenced is None:
            self.sequenced = Sequenced(self.seat.port)
        for number, codec in enumerate(Codec):
            entries = [Entry(None, f"sequenced {self.turns}.{number}.{n}") for n in range(3)]
            first = self.sequenced.write(("sequenced", 0), entries, codec)
            for n, entry in enumerate(entries):
                self.contents.add(("sequenced", 0), first + n, entry)

    def _write_compacted(self) -> None:
        written = Written(self._bootstrap, enable_idempotence=True, batch_num_messages=10)
        partition = ("compacted", 0)
        for n in range(150):
            key = f"key {self._random.randrange(KEYS)}"
            value = None if self._random.random() < 0.1 else f"{self.turns}.{n} " + "v" * self._random.randrange(100)
            written.send(partition, [Entry(key, value)])
        self._keep(written)
        if not self.is_thorough:
            return

        def is_compacted() -> bool:
            read = clients.read_whole(self._bootstrap, [partition], "read_uncommitted")[partition]
            kept = sum(1 for offset in read if offset < max(read) - 200)
            assert kept <= 2 * KEYS, f"{kept} old records are left"
            return True

        eventually(is_compacted, "compaction", DEADLINE_S)

    def _write_transactions(self) -> None:
        written = Written(self._bootstrap, transactional_id="exchange", compression_type="lz4")
        producer = written.producer
        producer.init_transactions(DEADLINE_S)
        both = (("transactions", 0), ("transactions", 1))
        for number, ends_with in enumerate(("commit", "abort", "offsets", "abort", "commit")):
            producer.begin_transaction()
            for partition in both:
                written.send(partition, self._entries(f"{ends_with} {number}", 8))
            self._keep(written, committed=ends_with != "abort")
            if ends_with == "abort":
                producer.abort_transaction(DEADLINE_S)
                continue
            if ends_with == "offsets":
                self._commit_offsets_in(written, both)
            producer.commit_transaction(DEADLINE_S)
            self._write(Written(self._bootstrap), both[0], 3, "between")

    def _commit_offsets_in(self, written: Written, partitions: Sequence[Partition]) -> None:
        offsets = {partition: self.turns * 10 + n for n, partition in enumerate(partitions)}
        member = clients.consumer(self._bootstrap, "transactional-group")
        try:
            written.producer.send_offsets_to_transaction(
                [TopicPartition(*partition, offset) for partition, offset in offsets.items()],
                member.consumer_group_metadata(),
                DEADLINE_S,
            )
        finally:
            member.close()
        self.contents.groups["transactional-group"] = offsets

    def _kill_under_load(self) -> None:
        partition = ("hot", 0)
        written = Written(self._bootstrap, enable_idempotence=True, batch_num_messages=20)
        entries = self._entries("hot", HOT_RECORDS)
        written.send(partition, entries)

        def is_acknowledged() -> bool:
            written.producer.poll(0)
            return len(written.delivered) > 0

        eventually(is_acknowledged, "a first acknowledgement", DEADLINE_S)
        self._blame(*check_running(self.seat.data_dir, self.contents.compacted))
        self.seat.stop("kill")
        for where, offset, entry in written.abandon():
            self.contents.add(where, offset, entry)
        self.contents.unacknowledged[partition] = set(entries) - set(self.contents.entries[partition].values())

    def _write_grouped(self) -> None:
        partition = ("grouped", 0)
        self._write(Written(self._bootstrap), partition, GROUPED_RECORDS)
        offsets = self.contents.groups.setdefault("plain-group", {partition: 0})
        if self.turns == 1:
            with_start = clients.consumer(self._bootstrap, "plain-group")
            with_start.commit(offsets=[TopicPartition(*partition, 0)], asynchronous=False)
            with_start.close()
        start = offsets[partition]
        read = clients.continue_group(self._bootstrap, "plain-group", partition, GROUPED_READ)
        self._expect("where the group goes on", read, list(range(start, start + GROUPED_READ)))
        offsets[partition] = start + GROUPED_READ

    def _leave_transaction(self) -> None:
        """Begin a transaction that the other broker will have to end; what comes after it has to wait for that."""
        name = f"left-{self.turns}"
        written = Written(self._bootstrap, transactional_id=name, transaction_timeout_ms=OPEN_MS)
        written.producer.init_transactions(DEADLINE_S)
        written.producer.begin_transaction()
        written.send(("left", 0), self._entries("left open", 5))
        self._keep(written, committed=False)
        self.contents.last_stable["left", 0] = max(self.contents.entries["left", 0]) - 4
        self._write(Written(self._bootstrap), ("left", 0), 5, "after")
