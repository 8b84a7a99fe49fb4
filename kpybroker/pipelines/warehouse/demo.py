"""The pipeline with a kill, late hours, a damaged hour and compaction: files, tables and what was sent are compared.

    python -m kpybroker.pipelines demo warehouse [--lines 30000]

It stops everything that it starts, and writes to a temporary directory only.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.pipelines.demo.broker import broker
from kpybroker.pipelines.demo.feeding import Progress
from kpybroker.pipelines.demo.options import demo_parser
from kpybroker.pipelines.demo.pictures import check_picture, save_picture
from kpybroker.pipelines.demo.postgresql import DATABASE, USER, postgres, programs
from kpybroker.pipelines.demo.spark import command, run_spark
from kpybroker.pipelines.demo.tables import BARS, table
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.messages import Messages
from kpybroker.pipelines.runtime.session import open_spark
from kpybroker.pipelines.sinks import table_output
from kpybroker.pipelines.sinks.files import Files
from kpybroker.pipelines.warehouse import hours
from kpybroker.pipelines.warehouse.compaction import Compacted, compact
from kpybroker.pipelines.warehouse.generator import START, Sent, lines
from kpybroker.pipelines.warehouse.picture import panels
from kpybroker.pipelines.warehouse.replay import Replay, replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "orders"
PARTITIONS, BATCHES, FIRST = 3, 3, 0.7
KILLED_AFTER = 2
DAMAGED = (START + timedelta(hours=8), START + timedelta(hours=11))
DELIVERY_SECONDS_MAX = 60.0
BAR_MAX = 30


@dataclass(frozen=True, slots=True)
class Found:
    """`hours`: start, lines, amount, late; `before`: the amounts by hour when the job was killed."""

    hours: Sequence[tuple[datetime, int, int, int]]
    before: dict[datetime, int]
    compacted: Compacted


@dataclass(slots=True)
class Places:
    """Where everything is."""

    bootstrap: str
    database: str
    place: Path
    jars: str | None
    results: str = field(init=False)
    checkpoint: str = field(init=False)

    def __post_init__(self) -> None:
        self.results, self.checkpoint = str(self.place / "warehouse"), str(self.place / "checkpoint")


def demo(arguments: Sequence[str]) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    parser = demo_parser("warehouse", __doc__)
    parser.add_argument("--lines", type=int, default=30_000, help="of orders (default 30000)")
    options = parser.parse_args(arguments)
    check_picture(options.picture)
    programs()
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        with broker(options.kpybroker, place / "broker.log") as bootstrap, postgres(_free_port()) as server:
            address = f"postgresql://{USER}@127.0.0.1:{server.port}/{DATABASE}"
            print(f"kpybroker listens at {bootstrap}, PostgreSQL at port {server.port}")
            places = Places(bootstrap, address, place, options.jars)
            show(_feed(places, list(lines(1, options.lines))), options.picture)
    print("PostgreSQL and the broker have stopped; their data is removed.")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _feed(places: Places, given: Sequence[Sent]) -> Found:
    """All that happens. Raises `PipelineError` if files, tables and lines are not the same in the end."""
    first = int(len(given) * FIRST)
    _send(places.bootstrap, given[:first])
    own = ["--input", TOPIC, "--output", places.results, "--output", places.database]
    own += ["--checkpoint", places.checkpoint, "--max-offsets", str(-(-first // BATCHES))]
    job = command("warehouse", places.bootstrap, places.jars, *own)
    print(f"\nSpark, killed after {KILLED_AFTER} batches of facts:", flush=True)
    _killed(job)
    before = {hour: amount for hour, _, amount, _ in _hours(places.database)}
    _send(places.bootstrap, given[first:])
    print("\nSpark again from the checkpoint, for what was left, the rest of the day and what came late:", flush=True)
    run_spark(job, places.place)
    spark = open_spark("local[2]", places.jars, None, Messages(sys.stderr))
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        _damage_and_replay(spark, places)
        print("\nCompaction:", flush=True)
        done = compact(spark, places.results, places.checkpoint, 0, lambda _line: None)
        print(f"    {done.hours} hours: {done.before} files are {done.after}")
        _compare(spark, places, given)
    finally:
        spark.stop()
    return Found(_hours(places.database), before, done)


def _send(bootstrap: str, given: Iterable[Sent]) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    if TOPIC not in admin.list_topics(timeout=DELIVERY_SECONDS_MAX).topics:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(DELIVERY_SECONDS_MAX)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    sent = list(given)
    progress = Progress("  orders", len(sent), sys.stdout)
    for one in sent:
        producer.produce(TOPIC, one.value, one.key, timestamp=one.timestamp_ms)
    if producer.flush(DELIVERY_SECONDS_MAX):
        raise PipelineError("The broker did not take the lines.", "Try again on a quieter machine.")
    progress.at(len(sent))


def _killed(job: Sequence[str]) -> None:
    """Run the job, and kill it when it has written some batches of facts; its JVM ends with it."""
    process = subprocess.Popen(job, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    written = 0
    try:
        for line in process.stdout:
            print(f"    {line.rstrip()}", flush=True)
            written += line.startswith("facts: ") and " rows in batch " in line
            if written == KILLED_AFTER:
                break
        else:
            raise PipelineError("The Spark job has ended by itself.", "Run the pipeline by hand to see why.")
    finally:
        process.kill()
        process.wait()
    print("    killed")


def _hours(database: str) -> list[tuple[datetime, int, int, int]]:
    with table_output.connect(database) as connection:
        rows = connection.execute("select hour, lines, amount, late from hours order by hour").fetchall()
    return [(hour, int(count), int(amount), int(late)) for hour, count, amount, late in rows]


def _damage_and_replay(spark: SparkSession, places: Places) -> None:
    """Some hours are lost in both places, and come back from the topic."""
    start, end = DAMAGED
    files = Files(spark, places.results)
    files.remove(f"{places.results}/facts/{hours.folder(start)}")
    with table_output.connect(places.database) as connection:
        gone = connection.execute("delete from facts where event_time >= %s and event_time < %s", [start, end]).rowcount
    print(f"\n{gone} rows and a directory are lost. Replay of {start:%H}:00 to {end:%H}:00:", flush=True)
    client = {"bootstrap.servers": places.bootstrap}
    wanted = Replay(start, end, places.checkpoint, (places.results,), (places.database,), client=client)
    replay(spark, wanted, lambda line: print(f"    {line}"))


def _compare(spark: SparkSession, places: Places, given: Sequence[Sent]) -> None:
    rows = spark.read.parquet(f"{places.results}/facts").select("topic", "partition", "offset", "id", "amount")
    in_files = sorted(tuple(row) for row in rows.collect())
    with table_output.connect(places.database) as connection:
        query = 'select topic, "partition", "offset", id, amount from facts'
        in_table = sorted(tuple(row) for row in connection.execute(query).fetchall())
        (dead,) = connection.execute("select count(*) from dead_letters").fetchone() or (0,)
    if in_files != in_table or len(in_files) + dead != len(given):
        cause = (
            f"{len(given)} lines were sent; {len(in_files)} facts in files, {len(in_table)} in the table, {dead} dead"
        )
        raise PipelineError(f"{cause}.", "This is a defect: please report it.")
    print(f"\n{len(given)} lines are {len(in_files)} facts, the same in files and table, and {dead} dead letters.")


def show(found: Found, picture: str | None) -> None:
    """Print the hours, and draw them."""
    most = max((amount for _, _, amount, _ in found.hours), default=1)
    grown: dict[datetime, int] = defaultdict(int)
    rows = []
    for hour, count, amount, late in found.hours:
        grown[hour] = amount - found.before.get(hour, amount)
        bar = BARS[-1] * round(BAR_MAX * amount / most)
        corrected = f"+{grown[hour] / 100:,.2f}" if grown[hour] else ""
        rows.append((f"{hour:%Y-%m-%d %H}:00", count, late, f"{amount / 100:,.2f}".rjust(12), corrected.rjust(12), bar))
    heads = ("hour", "lines", "late", "amount", "corrected", "")
    print(f"\n{table('Hours, in UTC; corrected by what came after the kill', heads, rows)}\n")
    save_picture(picture, *panels(found.hours, found.before, found.compacted))
