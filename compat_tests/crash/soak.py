"""Kill a broker under load, again and again, and check that it kept everything that it acknowledged.

    python -m compat_tests.crash.soak --kills 200 --seed 7 [--zookeeper] [--broker kafka] [--keep-files]

A seed fixes the moments of the kills and what the producers send; what is on its way at such a moment is the machine's
affair. SIGKILL leaves the page cache alone, so this is about a process that dies and not about power cuts: those are
the affair of `power_cuts`, and of `tests/storage`, on files that lose what was not synced.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from compat_tests.crash.dump import dump_segments, find_damage
from compat_tests.crash.history import History, Partition, check
from compat_tests.crash.load import (
    UNKNOWN_FOR_A_MOMENT,
    Client,
    Reader,
    TopicMaker,
    Writer,
    WriterKind,
    log_ends,
    read_all,
)
from compat_tests.exchange.files import check_verify
from compat_tests.support.quick import admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.soaks import connect_string, report, say, soak_parser
from compat_tests.support.waiting import eventually

WRITERS = (
    WriterKind("none"),
    WriterKind("gzip"),
    WriterKind("snappy"),
    WriterKind("lz4"),
    WriterKind("zstd", value_bytes_max=40_000),
    WriterKind("none", idempotent=False),
)
# topic -> its configuration: as it comes, with a roll every second or so, and with an fsync before every response
TOPICS: dict[str, dict[str, int]] = {
    "plain": {},
    "rolling": {"segment_bytes": 150_000, "index_interval_bytes": 512},
    "flushed": {"segment_bytes": 400_000, "flush_messages": 1},
}
PARTITIONS_PER_TOPIC = 2
OVERRIDES = {
    # so that recovery points, checkpoints and flushes are at every stage when the broker dies
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "log.flush.scheduler.interval.ms": "200",
    "log.flush.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "offsets.topic.num.partitions": "4",
}
ACKNOWLEDGED_BEFORE_KILL = 300
PROGRESS_DEADLINE_S = 180.0
KILL_AFTER_S_MAX = 0.6
KILLED_WHILE_STARTING = 0.25


@dataclass(slots=True)
class Soak:
    """One broker, its clients, and what they saw."""

    broker: Broker
    seed: int
    say: Callable[[str], None] = print
    history: History = field(default_factory=History)
    writers: list[Writer] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)

    @property
    def partitions(self) -> list[Partition]:
        return [(topic, index) for topic in TOPICS for index in range(PARTITIONS_PER_TOPIC)]

    def run(self, kills: int) -> list[str]:
        """Kill `kills` times; everything that is wrong afterwards. The broker is left stopped."""
        random = Random(self.seed)
        self._create_topics()
        self._start_clients()
        for number in range(1, kills + 1):
            self._await_load()
            time.sleep(random.uniform(0, KILL_AFTER_S_MAX))
            self._note_ends()
            time.sleep(random.uniform(0, 0.05))
            self.broker.kill()
            if random.random() < KILLED_WHILE_STARTING:
                self._kill_while_starting(random.uniform(0.05, 1.0))
            self.broker.start()
            self._note_ends()
            self.say(f"kill {number}/{kills}: {self._acknowledged} records acknowledged")
        self._await_load()
        self._stop_clients()
        return self._judge()

    @property
    def _acknowledged(self) -> int:
        return sum(writer.acknowledged for writer in self.writers)

    def _create_topics(self) -> None:
        for topic, config in TOPICS.items():
            create_topic(self.broker.bootstrap, topic, PARTITIONS_PER_TOPIC, **config)

    def _start_clients(self) -> None:
        bootstrap = self.broker.bootstrap
        for group, subscribes in (("assigned", False), ("subscribed", True)):
            reader = Reader(group, bootstrap, self.partitions, self.history, subscribes=subscribes)
            self._start(reader)
        self._start(TopicMaker(bootstrap, self.history, self.seed))
        self._start_writers()

    def _start_writers(self) -> None:
        """A new life of each."""
        excused = UNKNOWN_FOR_A_MOMENT if self.broker.kind == "kafka" else frozenset[int]()
        for kind in WRITERS:
            number = len(self.writers)
            seed = self.seed * 1000 + number
            kind = replace(kind, excused=excused)
            writer = Writer(number, kind, self.broker.bootstrap, self.partitions, self.history, seed)
            self.writers.append(writer)
            self._start(writer)

    def _start(self, client: Client) -> None:
        self.clients.append(client)
        client.start()

    def _await_load(self) -> None:
        """Every kill meets a broker that serves every producer, and a reader."""
        before = {writer: writer.acknowledged for writer in self.writers if not writer.is_abandoned}
        each = ACKNOWLEDGED_BEFORE_KILL // len(before)

        def is_loaded() -> bool:
            missing = [writer.name for writer, count in before.items() if writer.acknowledged < count + each]
            assert not missing, f"no responses for {missing}; {self.history.failures[:3]}"
            return True

        eventually(is_loaded, "progress of every producer", PROGRESS_DEADLINE_S)

    def _note_ends(self) -> None:
        for partition, end in log_ends(self.broker.bootstrap, self.partitions).items():
            self.history.ends[partition].append(end)

    def _kill_while_starting(self, after_s: float) -> None:
        end = time.monotonic() + after_s
        self.broker.service.start(lambda _: time.monotonic() > end)
        self.broker.kill()

    def _stop_clients(self) -> None:
        for client in self.clients:
            client.stop()
        for client in self.clients:
            client.join(PROGRESS_DEADLINE_S)
            if client.is_alive() and self.broker.kind == "kpybroker":
                # On Kafka a synchronous commit may look for its coordinator for longer.
                self.history.failures.append(f"{client.name} did not end")

    def _judge(self) -> list[str]:
        stored = read_all(self.broker.bootstrap, self.partitions)
        topics = set(admin_client(self.broker.bootstrap).list_topics(timeout=30).topics)
        problems = check(self.history, stored, topics)
        self.broker.stop()
        problems += find_damage(dump_segments(self.broker.data_dir))
        problems += check_verify(self.broker.data_dir, set(), is_clean=True)
        count = sum(map(len, stored.values()))
        self.say(
            f"{count} records stored, {self._acknowledged} acknowledged, {len(self.history.commits)} looks at commits"
        )
        return problems


def main(arguments: list[str]) -> int:
    options = soak_parser("Kill a broker under load and check what it kept.", kills=200).parse_args(arguments)
    say(f"{options.kills} kills of {options.broker}, seed {options.seed}")
    directory = Path(tempfile.mkdtemp(prefix="soak-"))
    with connect_string(directory, "soak", needed=options.zookeeper or options.broker == "kafka") as connect:
        broker = Broker(options.broker, directory / "broker", connect, OVERRIDES)
        try:
            broker.start()
            problems = Soak(broker, options.seed, say).run(options.kills)
        finally:
            broker.service.kill()
    return report(problems, directory, options, "everything was kept")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
