"""The pipeline `warehouse`: files by hour and tables equal to a plain recount, with late and broken lines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.spark.pipelines.recounts.warehouse import Expected, recount
from compat_tests.spark.pipelines.surviving import check_changed_topics, command, die, survive
from compat_tests.support.machine.postgres import USER, Postgres
from compat_tests.support.quick import DEADLINE_S, QUIET, admin_client, create_topic
from compat_tests.support.services import Broker
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import Options, Run
from kpybroker.pipelines.runtime.run import run
from kpybroker.pipelines.sinks.files import Files
from kpybroker.pipelines.warehouse import hours
from kpybroker.pipelines.warehouse.compaction import compact
from kpybroker.pipelines.warehouse.generator import NO_LINES, START, Sent, lines
from kpybroker.pipelines.warehouse.pipeline import WAREHOUSE, WarehouseOptions
from kpybroker.pipelines.warehouse.replay import Replay, replay

PARTITIONS = 3


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def address(database: Postgres) -> str:
    """Of an empty database."""
    for table in ("facts", "hours", "dead_letters"):
        database.execute(f"drop table if exists {table}")
    return f"postgresql://{USER}@127.0.0.1:{database.port}/shop"


def send(bootstrap: str, topic: str, sent: Sequence[Sent]) -> None:
    """Customers keep their partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET})
    for one in sent:
        number = sum(one.key.encode()) % PARTITIONS
        producer.produce(topic, one.value, one.key, partition=number, timestamp=one.timestamp_ms)
    assert producer.flush(DEADLINE_S) == 0


def large_orders() -> list[Sent]:
    """Their sum has more than 64 bits."""
    line: dict[str, Any] = {"time": START.isoformat(), "customer": "rich", "country": "NO", "product": "p"}
    line |= {"quantity": 999_999, "price": 10**12 - 1}
    sent = round(START.timestamp() * 1000)
    return [Sent(sent, "rich", json.dumps({"id": f"large-{n}", **line}).encode()) for n in range(12)]


def expected(*parts: Sequence[Sent]) -> Expected:
    return recount((one.timestamp_ms, one.value) for part in parts for one in part)


def options_for(broker: Broker, topic: str, place: Path, *outputs: str) -> Options[WarehouseOptions]:
    return Options(
        broker.bootstrap,
        (topic,),
        WarehouseOptions(),
        checkpoint=str(place / "checkpoint"),
        output=(str(place / "results"), *outputs),
    )


def files_are(spark: SparkSession, directory: str, wanted: Expected) -> None:
    """The facts, each once and in the directory of its hour; the last row of each hour; the dead letters."""
    rows = spark.read.parquet(f"{directory}/facts").collect()
    assert len(rows) == len(wanted.facts)
    assert {row.id: (_utc(row.event_time), row.amount) for row in rows} == wanted.facts
    for row in rows:
        start = _utc(row.event_time).replace(minute=0, second=0, microsecond=0)
        assert (row.date.isoformat(), row.hour) == (start.date().isoformat(), start.hour)
    last = {}
    for row in sorted(spark.read.parquet(f"{directory}/hours").collect(), key=lambda row: row.batch):
        last[_utc(row.hour)] = [row.lines, row.quantity, row.amount, row.late]
    assert last == dict(wanted.hours)
    assert spark.read.parquet(f"{directory}/dead_letters").count() == wanted.broken


def _utc(naive: datetime) -> datetime:
    """Spark gives times in the zone of the machine."""
    return naive.astimezone(UTC)


def tables_are(database: Postgres, wanted: Expected) -> None:
    rows = database.execute("select id, extract(epoch from event_time)::text, amount from facts")
    assert len(rows) == len(wanted.facts)
    found = {one: (datetime.fromtimestamp(float(time), UTC), int(amount)) for one, time, amount in rows}
    assert found == wanted.facts
    sums = database.execute("select extract(epoch from hour)::bigint, lines, quantity, amount, late from hours")
    assert {datetime.fromtimestamp(int(hour), UTC): list(map(int, rest)) for hour, *rest in sums} == dict(wanted.hours)
    assert database.execute("select count(*) from dead_letters") == [[str(wanted.broken)]]


def test_facts_are_in_their_hours_and_hours_are_corrected(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, database: Postgres, address: str
) -> None:
    """In two runs, so the second one corrects hours of the first; then compaction, and a replay of some hours.

    Sums have more than 64 bits, and what is not a line does not end the run. Partitions are added before the replay.
    """
    name = topic(partitions=PARTITIONS)
    options = options_for(broker, name, tmp_path, address)
    given = list(lines(5, 600, hours=6))
    given[0] = replace(given[0], value=given[0].value.replace(b'"customer": "', b'"customer": "\\u0000'))
    assert b"\\u0000" in given[0].value, "PostgreSQL has no such text"
    given[1:1] = [*large_orders(), *(replace(given[0], value=value) for value in NO_LINES)]
    send(broker.bootstrap, name, given[:400])
    run(spark, WAREHOUSE, options)
    first = expected(given[:400])
    files_are(spark, options.directories[0], first)
    send(broker.bootstrap, name, given[400:])
    report = run(spark, WAREHOUSE, replace(options, min_partitions=5, max_offsets=100))
    wanted = expected(given)
    assert report.read == len(given) - 400
    assert any(wanted.hours[hour] != sums for hour, sums in first.hours.items())
    files_are(spark, options.directories[0], wanted)
    tables_are(database, wanted)

    assert options.checkpoint is not None
    done = compact(spark, options.directories[0], options.checkpoint, 0, lambda _line: None)
    assert done.before > done.after == done.hours > 0
    files_are(spark, options.directories[0], wanted)

    gone = [START + timedelta(hours=hour) for hour in (1, 4)]
    text = "delete from facts where event_time >= '{}' and event_time < '{}' and customer < 'customer-1'"
    database.execute(text.format(*gone))
    damaged = f"{options.directories[0]}/facts/{hours.folder(START + timedelta(hours=2))}"
    Files(spark, damaged).remove(damaged)
    admin = admin_client(broker.bootstrap)
    admin.create_partitions([NewPartitions(name, PARTITIONS + 1)])[name].result(DEADLINE_S)
    wish = Replay(
        START + timedelta(hours=1),
        START + timedelta(hours=4),
        options.checkpoint,
        (options.directories[0],),
        (address,),
        client={"bootstrap.servers": broker.bootstrap},
    )
    count = replay(spark, wish, lambda _line: None)
    assert count == sum(wanted.hours[START + timedelta(hours=hour)][0] for hour in (1, 2, 3))
    files_are(spark, options.directories[0], wanted)
    tables_are(database, wanted)


class Cut(Exception):
    """The process died here."""


def test_a_change_of_files_that_was_cut_off_anywhere_is_carried_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of the file system is the last one once; before the plan is there, nothing has changed."""
    cut_at = -1

    def steps(name: str) -> None:
        plain = getattr(Files, name)

        def step(self: Files, *arguments: str) -> None:
            nonlocal cut_at
            if cut_at == 0:
                raise Cut
            cut_at -= 1
            plain(self, *arguments)

        monkeypatch.setattr(Files, name, step)

    for name in ("move", "remove", "write"):
        steps(name)
    rows = spark.range(40).selectExpr("id", "timestamp_seconds(id) as event_time")
    whole = tmp_path / "whole"
    for batch in range(3):
        rows.where(f"id % 3 = {batch}").write.parquet(f"{whole}/date=1970-01-01/hour=0/batch={batch}")
    for number in range(20):
        place = f"{tmp_path}/{number}"
        cut_at = -1
        files = Files(spark, place)
        shutil.copytree(whole, place)
        (hour,) = hours.found(files, place, 2)
        cut_at = number
        try:
            hours.replace(files, place, hour, spark.read.parquet(*hour.paths), 0)
        except Cut:
            was_cut = True
        else:
            was_cut = False
        cut_at = -1
        before = hours.found(files, place, 2)
        recovered = hours.recover(files, place)
        assert sorted(row.id for row in spark.read.parquet(place).collect()) == list(range(40))
        batches = [one.batches for one in hours.found(files, place, 2)]
        assert batches == ([(0, 1, 2)] if was_cut and not recovered and next(before).batches == (0, 1, 2) else [(2,)])
        if not was_cut:
            break
    assert not was_cut
    assert number > 6


@pytest.mark.wide
def test_a_run_begins_and_ends_where_its_options_say(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path
) -> None:
    name = topic(partitions=PARTITIONS)
    given = list(lines(6, 300, hours=6))
    send(broker.bootstrap, name, given)
    middle, end = START + timedelta(hours=2), START + timedelta(hours=4)

    def read(number: int, **changes: Any) -> set[str]:
        options = options_for(broker, name, tmp_path / str(number))
        run(spark, WAREHOUSE, replace(options, run=Run.WHOLE, checkpoint=None, **changes))
        return {row.id for row in spark.read.parquet(f"{options.directories[0]}/facts").collect()}

    from_ms, to_ms = (int(moment.timestamp() * 1000) for moment in (middle, end))
    between = expected([one for one in given if from_ms <= one.timestamp_ms < to_ms])
    assert read(1, starting_offsets=middle.isoformat(), until=end.isoformat()) == set(between.facts)
    part = [one for one in given if sum(one.key.encode()) % PARTITIONS == 1]
    rest = [one for one in given if sum(one.key.encode()) % PARTITIONS != 1]
    assert read(2, starting_offsets=f"{name}:1:{len(part) - 10}") == set(expected(part[-10:], rest).facts)
    with pytest.raises(PipelineError, match=f"{name} has {PARTITIONS} partitions, and"):
        read(3, starting_offsets=f"{name}:{PARTITIONS}:0")


@pytest.mark.wide
def test_a_database_that_is_away_loses_nothing(
    spark: SparkSession, broker: Broker, topic: MakeTopic, tmp_path: Path, database: Postgres, address: str
) -> None:
    """It crashes when the first batch is written. A column that is missing is named."""
    name = topic(partitions=PARTITIONS)
    options = replace(options_for(broker, name, tmp_path, address), max_offsets=60)
    given = list(lines(7, 300, hours=6))
    send(broker.bootstrap, name, given)

    def crash(line: str) -> None:
        if line.startswith("facts:") and database.service.running:
            database.crash()

    try:
        with pytest.raises(PipelineError, match="PostgreSQL"):
            run(spark, WAREHOUSE, options, crash)
        with pytest.raises(PipelineError, match=r"PostgreSQL at 127\.0\.0\.1:\d+/shop cannot be used: .*refused"):
            run(spark, WAREHOUSE, options)
    finally:
        database.start()
    run(spark, WAREHOUSE, options)
    wanted = expected(given)
    files_are(spark, options.directories[0], wanted)
    tables_are(database, wanted)

    database.execute("alter table facts drop column amount")
    send(broker.bootstrap, name, given[:10])
    with pytest.raises(PipelineError, match=r"The table facts of .* has no columns amount bigint"):
        run(spark, WAREHOUSE, options)


@pytest.mark.wide
def test_a_replay_that_would_lose_facts_is_refused(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path, database: Postgres, address: str
) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "orders", PARTITIONS)
    options = options_for(broker, "orders", tmp_path, address)
    given = list(lines(8, 200, hours=4))
    send(broker.bootstrap, "orders", given)
    run(spark, WAREHOUSE, options)
    gone = TopicPartition("orders", 0, 30)
    admin = admin_client(broker.bootstrap)
    admin.delete_records([gone])[gone].result(DEADLINE_S)
    assert options.checkpoint is not None
    wish = Replay(
        START - timedelta(hours=10),
        START + timedelta(hours=4),
        options.checkpoint,
        (options.directories[0],),
        client={"bootstrap.servers": broker.bootstrap},
    )
    for outputs in (wish, replace(wish, directories=(), databases=(address,))):
        with pytest.raises(PipelineError, match="facts of these hours are not in the topic any more"):
            replay(spark, outputs, lambda _line: None)
    wanted = expected(given)
    files_are(spark, options.directories[0], wanted)
    tables_are(database, wanted)
    left = replay(spark, replace(wish, allow_data_loss=True), lambda _line: None)
    assert 0 < left < len(wanted.facts)
    assert spark.read.parquet(f"{options.directories[0]}/facts").count() == left


@pytest.mark.wide
def test_facts_are_there_once_after_driver_broker_and_database_were_killed(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path, database: Postgres, address: str
) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "orders", PARTITIONS)
    options = replace(options_for(broker, "orders", tmp_path, address, "topics:out"), max_offsets=120)
    given = list(lines(9, 900, hours=8))
    send(broker.bootstrap, "orders", given)
    job = command(WAREHOUSE, options)
    survive(broker, job, tmp_path, ["facts", "hours", "dead_letters"])
    die(job, "files", "facts", tmp_path / "with-database", lambda: database.restart(crash=True))
    run(spark, WAREHOUSE, options)
    wanted = expected(given)
    files_are(spark, options.directories[0], wanted)
    tables_are(database, wanted)


@pytest.mark.wide
def test_partitions_are_added_and_a_topic_is_made_again(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path
) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, "orders", 2)
    given = list(lines(10, 60))

    def write(partition: int) -> int:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for one in given:
            producer.produce("orders", one.value, one.key, partition=partition, timestamp=one.timestamp_ms)
        assert producer.flush(DEADLINE_S) == 0
        return len(given)

    check_changed_topics(spark, broker, WAREHOUSE, options_for(broker, "orders", tmp_path), write)
