"""The pipeline on a real database: PostgreSQL is changed, Debezium writes what it sees, and the tables are compared.

    python -m kpybroker.pipelines demo changes --connect-jars DIR,DIR [--transactions 100]

It stops everything that it starts, and writes to a temporary directory only.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.pipelines.changes import workload
from kpybroker.pipelines.changes.connect import jars, source, worker
from kpybroker.pipelines.changes.versions import FOLDER, Version, Versions, read_table
from kpybroker.pipelines.changes.workload import SNAPSHOT, TABLES, Workload
from kpybroker.pipelines.demo.broker import broker
from kpybroker.pipelines.demo.feeding import Progress
from kpybroker.pipelines.demo.options import demo_parser
from kpybroker.pipelines.demo.pictures import check_picture, legend, save_picture
from kpybroker.pipelines.demo.postgresql import postgres, programs
from kpybroker.pipelines.demo.spark import command, run_spark
from kpybroker.pipelines.demo.tables import Row, read_json, table
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.session import open_spark

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRANSACTIONS = "shop.transaction"
TOPICS = (*(f"shop.{name}" for name in TABLES), TRANSACTIONS)
ROWS, ROUNDS, BATCHES = 50, 10, 5
STEPS = {3: workload.ADD_COLUMN, 5: workload.WIDEN_COLUMN, 7: workload.DROP_COLUMN}
OPS = {"r": "read by the snapshot", "c": "inserted", "u": "updated", "d": "deleted", "t": "truncated"}
SECONDS_MAX, POLL_S = 120.0, 0.3


@dataclass(frozen=True, slots=True)
class Compared:
    """A version, its rows by table, and what is wrong with them."""

    version: Version
    rows: dict[str, int]
    wrong: list[str]


def demo(arguments: Sequence[str]) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    parser = demo_parser("changes", __doc__)
    parser.add_argument("--connect-jars", required=True, metavar="DIR,DIR", help="Kafka Connect and Debezium")
    parser.add_argument("--transactions", type=int, default=100, help="how many change the source (default 100)")
    options = parser.parse_args(arguments)
    check_picture(options.picture)
    places = jars(options.connect_jars)
    programs()
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        with broker(options.kpybroker, place / "broker.log") as bootstrap, postgres(_free_port()) as database:
            print(f"kpybroker listens at {bootstrap}, PostgreSQL at port {database.port}")
            shop = Workload(database.execute, seed=1)
            shop.create(ROWS)
            print("Kafka Connect starts, and Debezium takes a snapshot", flush=True)
            with worker(bootstrap, places, _free_port(), place, source(database.port, ",".join(TABLES), schemas=True)):
                _await(bootstrap, TOPICS[0], lambda _rows: True, "a snapshot")
                _change(shop, options.transactions)
                _await(bootstrap, TRANSACTIONS, lambda rows: _has_end(rows, shop.last), "the last transaction")
            records = sum(len(read_json(bootstrap, topic)) for topic in TOPICS)
            _compute(bootstrap, options.jars, place, records)
            show(_compare(options.jars, place, shop), options.picture)
    print("PostgreSQL, Connect and the broker have stopped; their data is removed.")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _change(shop: Workload, transactions: int) -> None:
    """Transactions in rounds; between some the columns change, and in one a table is emptied."""
    progress = Progress("  transactions", transactions, sys.stdout)
    size = -(-transactions // ROUNDS)
    for turn in range(ROUNDS):
        if turn in STEPS:
            shop.alter(STEPS[turn])
        shop.transact(size, *([workload.TRUNCATE] if turn == ROUNDS - 2 else []))
        progress.at(min((turn + 1) * size, transactions))


def _await(bootstrap: str, topic: str, enough: Callable[[list[Row]], bool], what: str) -> None:
    """Wait until the records of a topic are enough."""
    deadline = time.monotonic() + SECONDS_MAX
    while not ((rows := read_json(bootstrap, topic)) and enough(rows)):
        if time.monotonic() > deadline:
            raise PipelineError(f"Debezium has not written {what} to {topic}.", "Try again on a quieter machine.")
        time.sleep(POLL_S)


def _has_end(rows: list[Row], transaction: int) -> bool:
    ends = [row["payload"]["id"] for row in rows if row["payload"]["status"] == "END"]
    return any(one.startswith(f"{transaction}:") for one in ends)


def _compute(bootstrap: str, spark_jars: str | None, place: Path, records: int) -> None:
    own = ["--input", ",".join(TOPICS), "--transactions", TRANSACTIONS, "--output", str(place / "shop")]
    own += ["--output", "topics:demo", "--checkpoint", str(place / "checkpoint"), "--buckets", "4"]
    own += ["--versions", "100", "--max-offsets", str(-(-records // BATCHES))]
    job = command("changes", bootstrap, spark_jars, *own)
    print(f"\nSpark, from {records} records to tables:\n  {shlex.join(job)}", flush=True)
    start = time.monotonic()
    run_spark(job, place)
    print(f"  done after {time.monotonic() - start:.1f} s\n")


def _compare(spark_jars: str | None, place: Path, shop: Workload) -> list[Compared]:
    """Each version, and the source as it was after the version's transaction, row by row."""
    with _quiet_start(place / "compare.log"):
        spark = open_spark("local[2]", spark_jars, None)
    directory = str(place / "shop")
    found = []
    try:
        versions = Versions(spark, f"{directory}/{FOLDER}")
        for number in versions.numbers():
            version = versions.load(number)
            expected = shop.history[version.transaction or SNAPSHOT] if version.tables else {}
            rows: dict[str, int] = {}
            wrong: list[str] = []
            for name in version.tables:
                here = [row.asDict() for row in read_table(spark, directory, name, number).collect()]
                rows[name] = len(here)
                wrong += workload.differences({row["id"]: workload.plain(row) for row in here}, expected[name])
            found.append(Compared(version, rows, wrong))
    finally:
        spark.stop()
    return found


@contextmanager
def _quiet_start(log: Path) -> Iterator[None]:
    """What the JVM and Spark say while they start goes to a file."""
    before = os.dup(2)
    with log.open("wb") as out:
        os.dup2(out.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)


def show(found: Sequence[Compared], picture: str | None) -> None:
    """Print the versions, and draw them. Raises `PipelineError` if one is not what the source was."""
    rows = []
    for one in found:
        version = one.version
        counts = [sum(ops.get(op, 0) for ops in version.changes.values()) for op in OPS]
        sizes = [one.rows.get(name, 0) for name in TABLES]
        equal = "no" if one.wrong else "yes"
        rows.append((version.number, version.transaction or "-", *counts, version.pending, *sizes, equal))
    heads = ("version", "transaction", *OPS, "waiting", "customers", "orders", "equal to the source")
    print(f"{table('The tables after each batch', heads, rows)}\n")
    wrong = [f"version {one.version.number}: {text}" for one in found for text in one.wrong]
    if wrong:
        raise PipelineError(f"A table is not the source's: {wrong[0][:500]}.", "This is a defect: please report it.")
    print(f"{len(found)} versions, each equal to the source after its transaction, row by row.")
    save_picture(picture, lambda axes: _sizes(axes, found), lambda axes: _changes(axes, found))


def _sizes(axes: Axes, found: Sequence[Compared]) -> None:
    for name in TABLES:
        axes.plot([one.version.number for one in found], [one.rows.get(name, 0) for one in found], "o-", label=name)
    axes.set_xticks([one.version.number for one in found])
    axes.set_title("Rows of the tables, each version equal to the source")
    axes.set_ylabel("rows")
    legend(axes)


def _changes(axes: Axes, found: Sequence[Compared]) -> None:
    numbers = [one.version.number for one in found]
    below = [0] * len(found)
    for op, name in OPS.items():
        heights = [sum(ops.get(op, 0) for ops in one.version.changes.values()) for one in found]
        axes.bar(numbers, heights, bottom=below, label=name)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_title("Changes in each version")
    axes.set_xlabel("version")
    axes.set_ylabel("events")
    legend(axes)
