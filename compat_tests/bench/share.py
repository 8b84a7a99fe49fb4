"""`make bench-share`: share groups (KIP-932) next to Kafka 4.3.1: 1, 4 and 16 members, small and large batches.

    python -m compat_tests.bench.share [--quick] [--only WORDS] [--rounds N] [--no-write]

`ShareConsumerPerformance` of Kafka 4.3.1 reads a filled topic in a group of its own, which accepts each record; its
members are threads of one process. A core for the broker and one for the clients, in alternating rounds, counted as in
`make bench`. Both brokers allow as many records in flight as Kafka does by default. The page is written only when the
machine had nothing else to do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat_tests.bench.load.clients import Run, java, raw_arguments
from compat_tests.bench.load.page_cache import require_room
from compat_tests.bench.load.workloads import Figure, Sample, Workload
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import (
    KAFKA_4,
    OVERRIDES,
    Cores,
    Kinds,
    both_brokers_of_kafka_4,
    scratch_directory,
)
from compat_tests.bench.measuring.costs import memory, peak_rss_mb
from compat_tests.bench.measuring.report import Fact, Part, Result, facts_table, results_table
from compat_tests.bench.run import EXPLANATION, ROUNDS, SETTLE_S, Bench, Schedule
from compat_tests.support.quick import admin_client, create_topic
from compat_tests.support.tools import run_process
from compat_tests.support.waiting import eventually

MINUTES = 11.0
ROOM_GB = 4.0
FLOOR = 1.0
PARTITIONS, MEMBERS = 4, (1, 4, 16)
TIMEOUT_MS, ADMIN_S = 120_000, 30.0
SETTINGS = {
    "group.share.partition.max.record.locks": "2000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
}
"""With the usual 5 s of a heartbeat the members would wait for their partitions for most of a run."""


@dataclass(frozen=True, slots=True)
class Batches:
    """What a topic is filled with: so many records of a size in each batch, and how many are read in a run."""

    name: str
    records: int
    record_bytes: int
    count: int


SIZES = (
    Batches("batches of 10 records of 100 B", 10, 100, 1_000_000),
    Batches("16 KB batches of 1 KB", 16, 1024, 1_200_000),
)


@cache
def filled(bootstrap: str, batches: Batches, scale: float) -> str:
    """A topic with what the largest run reads, made once for each broker."""
    topic = f"share-{batches.records}"
    create_topic(bootstrap, topic, PARTITIONS)
    size = {"records": batches.records, "record_bytes": batches.record_bytes, "partitions": PARTITIONS}
    _wait_until_led(bootstrap, topic, size)
    requests = int(batches.count * scale) // batches.records + 1
    run_process([sys.executable, "-m", *raw_arguments(bootstrap, topic, in_flight=5, requests=requests, **size)])
    return topic


def _wait_until_led(bootstrap: str, topic: str, size: dict[str, int]) -> None:
    """The raw producer asks once, and Kafka says NOT_LEADER for a moment after it has said that a topic is made."""
    one = [sys.executable, "-m", *raw_arguments(bootstrap, topic, in_flight=PARTITIONS, requests=PARTITIONS, **size)]
    eventually(lambda: run_process(one, check=False).code == 0, f"{topic} is led", ADMIN_S)


def begin_at_start(bootstrap: str, group: str) -> None:
    """The group reads what is there already."""
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = admin_client(bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(timeout=ADMIN_S)


def share_consumers(bootstrap: str, topic: str, group: str, members: int, count: int) -> list[str]:
    """The command of so many members that end once they have read as many records between them."""
    return java(
        "org.apache.kafka.tools.ShareConsumerPerformance",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--hide-header"),
        *("--num-records", str(count), "--threads", str(members), "--timeout", str(TIMEOUT_MS)),
        jars="kafka-4.3.1",
    )


def read_rate(out: str) -> tuple[float, int]:
    """Records a second and records in all, of the tool's last line: times, MB, MB/s, records/s, records, fetch time."""
    row = [cell.strip() for cell in out.strip().splitlines()[-1].split(",")]
    return float(row[4]), int(row[5])


def share_consumer(members: int, batches: Batches, full_scale: float) -> Callable[[Run], Sample]:
    """One group reads the topic from its start. CPU is for a million records."""

    def run(here: Run) -> Sample:
        topic, count = filled(here.bootstrap, batches, full_scale), here.count(batches.count)
        begin_at_start(here.bootstrap, here.topic)
        before = here.cpu()
        rate, read = read_rate(here.client(share_consumers(here.bootstrap, topic, here.topic, members, count)))
        used = here.cpu() - before
        assert read >= count, f"{read} of {count} records read"
        return Sample((rate,), used / (read / 1e6))

    return run


def lines(full_scale: float) -> list[Workload]:
    """All of them, each with its floor."""
    return [
        Workload(
            (Figure(f"share group, {_counted(members)}, {batches.name}", "records/s", FLOOR),),
            share_consumer(members, batches, full_scale),
        )
        for batches in SIZES
        for members in MEMBERS
    ]


def _counted(members: int) -> str:
    return f"{members} member{'s' if members > 1 else ''}"


def measure(
    directory: Path, cores: Cores, plan: Schedule, workloads: list[Workload]
) -> tuple[list[Result], list[Fact]]:
    """The lines, and what memory the brokers have needed."""
    ours = {"kpybroker.new.cluster.features": "newest"}
    with both_brokers_of_kafka_4(directory, cores, {**OVERRIDES, **SETTINGS}, ours) as kinds:
        time.sleep(SETTLE_S)
        idle = {kind: memory(broker.service.pid).rss for kind, broker in kinds.items()}
        results = Bench(cast(Kinds, kinds), cores, plan).measure_all(workloads)
        peak = {kind: peak_rss_mb(broker.service.pid) for kind, broker in kinds.items()}
    return results, [
        Fact("resident memory, idle", "MB", idle["kafka"], idle["kpybroker"]),
        Fact("highest resident memory, after all lines", "MB", peak["kafka"], peak["kpybroker"]),
    ]


def main() -> int:
    """The command."""
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    scale = 0.1 if options.quick else 1.0
    workloads = [one for one in lines(scale) if options.only in one.figures[0].name]
    clock, apart, _ = command.prepare()
    plan = Schedule(clock, rounds, scale, MINUTES, len(workloads))
    with scratch_directory(options.dir) as scratch:
        require_room(scratch, ROOM_GB)
        results, held = measure(scratch / "apart", apart, plan, workloads)
    conditions = clock.conditions(rounds)
    parts: list[Part] = [
        f"{conditions.sentence()} {EXPLANATION}",
        "### Share groups: a core for the broker, another one for all members",
        results_table(results, KAFKA_4),
        "### Memory",
        facts_table(held, KAFKA_4),
    ]
    missed = [name for result in results for name in result.missed]
    return command.finish(options, "bench-share", conditions, parts, missed)


if __name__ == "__main__":
    sys.exit(main())
