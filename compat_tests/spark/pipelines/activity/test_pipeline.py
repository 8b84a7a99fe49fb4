"""The data pipeline's numbers against a recount in plain Python, from topic to topics and to Parquet."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec
from pyspark.sql import SparkSession

from compat_tests.conftest import MakeTopic
from compat_tests.deps import ROOT, jars_dir
from compat_tests.spark.pipelines.recounts.activity import Event, Recount, parse_access, parse_activity, parse_dpkg
from compat_tests.spark.pipelines.surviving import ENV, command
from compat_tests.support.quick import DEADLINE_S, QUIET, admin_client
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process
from compat_tests.support.waiting import eventually
from kpybroker.pipelines.activity.pipeline import ACTIVITY, ActivityOptions
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import Options, Run, result_topic
from kpybroker.pipelines.runtime.progress import Report
from kpybroker.pipelines.runtime.run import run as run_pipeline

MINUTE_MS = 60_000
WINDOW, LATENESS, GAP, TOP = 10, 10, 3, 3  # minutes, and pages
# a topic's times may be any: these are the site's, not the records'
MORNING = datetime(2024, 3, 5, 8, tzinfo=UTC)
END_OF_TIME = "9999-01-01T00:00:00Z"
PARSERS: dict[str, Callable[[str], tuple[int, str, str]]] = {
    "access": parse_access,
    "activity": parse_activity,
    "dpkg": parse_dpkg,
}


def activity_line(when: datetime, page: str, visitor: str) -> str:
    return json.dumps({"timestamp": when.isoformat(), "page": page, "user": visitor, "action": "view"})


def access_line(when: datetime, page: str, visitor: str) -> str:
    stamp = when.strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{visitor} - frank [{stamp}] "GET {page}?from=1#top HTTP/1.1" 200 2326 "http://example.org/" "a \\" b"'


def dpkg_line(when: datetime, page: str, visitor: str) -> str:
    words = {
        "a": f"status unpacked {page}:amd64 1.2-3",
        "b": f"install {page}:all <none> 1.2",
        "c": f"purge {page} 1 1",
    }
    return f"{when:%Y-%m-%d %H:%M:%S} {words.get(visitor[-1], f'conffile {page} keep')}"


LINES = {"access": access_line, "activity": activity_line, "dpkg": dpkg_line}
NOISE = {
    "access": ["", "no log line", '1.2.3.4 - - [31/Feb/2024:25:00:00 +0000] "GET / HTTP/1.0" 200 1', "x" * 5000],
    "activity": [
        "",
        "{",
        "[]",
        '{"page": "/x"}',
        '{"timestamp": "yesterday", "page": "/x"}',
        '{"timestamp": "+294247-01-10T04:00:54Z", "page": "/x"}',
        '{"timestamp": "-0500-01-01T00:00:00Z", "page": "/x"}',
        '{"timestamp": "2024-01-01"}',
    ],
    "dpkg": ["", "2024-03-05 08:00:00 sings libc6:amd64", "2024-99-05 08:00:00 status installed libc6:amd64 1"],
}


def some_lines(form: str, seed: int, start_minute: int, minutes: int, count: int) -> list[str]:
    """Lines in no order whatever, over a stretch of the morning; more from some visitors and on some pages."""
    dice = random.Random(seed)
    out = []
    for _ in range(count):
        when = MORNING + timedelta(minutes=start_minute, seconds=dice.randrange(minutes * 60))
        when += timedelta(milliseconds=dice.randrange(1000) if form == "activity" else 0)
        page = f"/p{min(dice.randrange(12), dice.randrange(12))}"
        out.append(LINES[form](when, page, f"10.0.0.{dice.choice('aabc')}"))
    return out


def write(broker: Broker, topic: str, lines: Sequence[str], heartbeat: str | None = None) -> list[tuple[int, int]]:
    """Write lines over the partitions of a topic; where each went."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **QUIET})
    places: dict[int, tuple[int, int]] = {}

    def keep(n: int) -> Callable[[object, Message], None]:
        def report(error: object, message: Message) -> None:
            assert error is None, error
            places[n] = message.partition(), message.offset()

        return report

    for n, line in enumerate(lines):
        producer.produce(topic, line.encode(), partition=n % 2, on_delivery=keep(n))
    assert producer.flush(DEADLINE_S) == 0
    if heartbeat is not None:
        producer.produce(topic, heartbeat, "heartbeat", partition=0)
        assert producer.flush(DEADLINE_S) == 0
    return [places[n] for n in range(len(lines))]


def as_events(form: str, lines: Sequence[str], places: Sequence[tuple[int, int]]) -> list[Event]:
    out = []
    for line, place in zip(lines, places, strict=True):
        if line not in NOISE[form]:
            time_ms, page, visitor = PARSERS[form](line)
            out.append(Event(time_ms, place, page, visitor))
    return out


Lines = Options[ActivityOptions]


def run(spark: SparkSession, options: Lines) -> Report:
    return run_pipeline(spark, ACTIVITY, options)


def own(options: Lines, **changes: Any) -> Lines:
    """With other options of the pipeline's own."""
    return replace(options, own=replace(options.own, **changes))


def with_topics(options: Lines, name: str) -> Lines:
    return replace(options, output=(*options.output, f"topics:{name}-out"))


def recount() -> Recount:
    return Recount(WINDOW * MINUTE_MS, LATENESS * MINUTE_MS, GAP * MINUTE_MS, TOP)


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, spark: SparkSession) -> Lines:
    return options_for(broker, topic(partitions=2), tmp_path)


def options_for(broker: Broker, topic: str, place: Path) -> Lines:
    return Options(
        bootstrap_servers=broker.bootstrap,
        input=(topic,),
        own=ActivityOptions(
            format="activity",
            window=f"{WINDOW} minutes",
            watermark=f"{LATENESS} minutes",
            session_gap=f"{GAP} minutes",
            top=TOP,
        ),
        checkpoint=str(place / "checkpoint"),
        output=(str(place / "results"),),
    )


def from_topic(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """Every committed JSON result in a topic, with its times as milliseconds; its key is one of its columns."""
    rows = []
    for message in committed(broker.bootstrap, topic):
        row = json.loads(message.value())
        assert message.key().decode() in row.values()
        rows.append({key: millis(value) if key.endswith(("_start", "_end")) else value for key, value in row.items()})
    return rows


def committed(bootstrap: str, topic: str) -> list[Message]:
    """All that a reader of committed records finds in a topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True, **QUIET})
    try:
        partitions = list(consumer.list_topics(timeout=DEADLINE_S).topics[topic].partitions)
        eventually(
            lambda: _decided(bootstrap, topic, partitions), f"the transactions of {topic} have ended", DEADLINE_S
        )
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        messages: list[Message] = []
        ends = 0
        while ends < len(partitions):
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"{len(messages)} records, then nothing within {DEADLINE_S} s"
            error = message.error()
            if error is None:
                messages.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends += 1
        return messages
    finally:
        consumer.close()


def _decided(bootstrap: str, topic: str, partitions: Sequence[int]) -> bool:
    """Whether a reader of committed records comes to the end: a commit's response precedes it in the partitions."""
    admin = admin_client(bootstrap)
    parts = [TopicPartition(topic, number) for number in partitions]
    ends = [
        [future.result(DEADLINE_S).offset for future in found.values()]
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        for found in [admin.list_offsets({part: OffsetSpec.latest() for part in parts}, isolation_level=level)]
    ]
    return ends[0] == ends[1]


def millis(text: str) -> int:
    assert text.endswith("Z")
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def from_parquet(spark: SparkSession, options: Lines, result: str) -> list[dict[str, Any]]:
    frame = spark.read.parquet(f"{options.directories[0]}/{result}").drop("batch")
    times = [name for name in frame.columns if name.endswith(("_start", "_end"))]
    for name in times:
        frame = frame.withColumn(name, frame[name].cast("timestamp"))
    columns = [f"unix_millis({name}) as {name}" if name in times else name for name in frame.columns]
    return [row.asDict() for row in frame.selectExpr(*columns).collect()]


def expected_rows(expected: Recount) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[Any]] = {
        "page_counts": expected.counts,
        "top_pages": expected.tops(),
        "sessions": expected.sessions,
    }
    return {result: _sorted([row._asdict() for row in of_result]) for result, of_result in rows.items()}


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: sorted((key, str(value)) for key, value in row.items()))


def compare(spark: SparkSession, broker: Broker, options: Lines, expected: Recount) -> None:
    for result, rows in expected_rows(expected).items():
        assert rows, f"no {result} to compare"
        if options.directories:
            assert _sorted(from_parquet(spark, options, result)) == rows
        for prefix in options.prefixes:
            assert _sorted(from_topic(broker, result_topic(prefix, result))) == rows


@pytest.mark.wide
def test_late_events_are_dropped_and_each_window_comes_out_once(
    spark: SparkSession, broker: Broker, options: Lines, name: str
) -> None:
    """Three runs over one checkpoint. The second brings events that are late but in time, and some too late."""
    options = with_topics(options, name)
    expected = recount()
    read_lines = 0
    batches = [
        some_lines("activity", 1, 0, 60, 150),
        some_lines("activity", 2, 60, 40, 100)
        + some_lines("activity", 3, 45, 15, 20)  # late, in time
        + some_lines("activity", 4, 5, 20, 30),  # too late for every window of theirs
        some_lines("activity", 5, 200, 30, 60) + some_lines("activity", 6, 80, 10, 20) + NOISE["activity"],
    ]
    for lines in batches:
        places = write(broker, options.input[0], lines)
        report = run(spark, options)
        expected.batch(as_events("activity", lines, places))
        compare(spark, broker, options, expected)
        read_lines += len(lines)
        noise = len(NOISE["activity"]) if lines is batches[-1] else 0
        assert (report.read, report.broken) == (len(lines), noise)
    assert expected.late >= 30
    # nothing new: nothing comes out, and the results stay as they are
    assert run(spark, options).rows == dict.fromkeys(ACTIVITY.results, 0)
    compare(spark, broker, options, expected)


@pytest.mark.wide
@pytest.mark.parametrize("form", ["access", "dpkg"])
def test_log_lines_of_each_format_with_a_heartbeat_at_their_end(
    spark: SparkSession, broker: Broker, options: Lines, form: str
) -> None:
    """The heartbeat closes every window of the stream, without being counted; noise is reported and not counted
    either."""
    options = own(options, format=form)
    lines = some_lines(form, 7, 0, 300, 250) + NOISE[form]
    places = write(broker, options.input[0], lines, END_OF_TIME)
    report = run(spark, options)
    expected = recount()
    expected.batch(as_events(form, lines, places), millis(END_OF_TIME))
    compare(spark, broker, options, expected)
    assert (report.read, report.broken, report.heartbeats) == (len(lines), len(NOISE[form]), 1)
    assert sum(count.events for count in expected.counts) == len(lines) - len(NOISE[form])


def test_a_whole_run_closes_everything_and_knows_no_lateness(
    spark: SparkSession, broker: Broker, options: Lines, name: str
) -> None:
    options = with_topics(replace(options, run=Run.WHOLE, checkpoint=None, max_offsets=60), name)
    lines = some_lines("activity", 8, 0, 300, 200) + NOISE["activity"]
    places = write(broker, options.input[0], lines, "2024-03-05T08:30:00Z")
    report = run(spark, options)
    expected = recount()
    expected.batch(as_events("activity", lines, places), millis(END_OF_TIME))
    compare(spark, broker, options, expected)
    assert (report.read, report.broken, report.heartbeats) == (len(lines), len(NOISE["activity"]), 1)
    with pytest.raises(PipelineError, match="has the results of an earlier run"):
        run(spark, options)


@pytest.mark.wide
def test_other_names_of_fields_epoch_times_and_a_time_zone(spark: SparkSession, broker: Broker, options: Lines) -> None:
    fields = {"time": "ts", "page": "url", "visitor": "cookie", "action": "verb"}
    options = replace(options, run=Run.WHOLE, checkpoint=None, timezone="Europe/Oslo")
    options = own(options, fields=fields, window="1 hour")
    seconds = int(MORNING.timestamp())
    times = [
        seconds,
        seconds * 1000 + 5,
        str(seconds),
        "2024-03-05T09:00:00",
        "2024-03-05 09:00:00.5",
        "2024-03-05T08:00:00Z",
    ]
    write(broker, options.input[0], [json.dumps({"ts": time, "url": "/", "cookie": 7}) for time in times])
    run(spark, options)
    hour = {"window_start": seconds * 1000, "window_end": (seconds + 3600) * 1000}
    assert from_parquet(spark, options, "page_counts") == [{**hour, "page": "/", "events": 6}]
    (session,) = from_parquet(spark, options, "sessions")
    assert (session["visitor"], session["events"]) == ("7", 6)
    assert (session["session_start"], session["session_end"]) == (seconds * 1000, seconds * 1000 + 500)


@pytest.mark.wide
def test_sliding_windows_count_an_event_in_each(spark: SparkSession, broker: Broker, options: Lines) -> None:
    options = replace(own(options, window="10 minutes", slide="5 minutes"), run=Run.WHOLE, checkpoint=None)
    lines = some_lines("activity", 9, 0, 60, 40)
    write(broker, options.input[0], lines)
    run(spark, options)
    counts: dict[tuple[int, str], int] = {}
    for time_ms, page, _ in map(parse_activity, lines):
        start = time_ms - time_ms % (5 * MINUTE_MS)
        for window in (start, start - 5 * MINUTE_MS):
            counts[window, page] = counts.get((window, page), 0) + 1
    rows = from_parquet(spark, options, "page_counts")
    assert {(row["window_start"], row["page"]): row["events"] for row in rows} == counts
    assert len(rows) == len(counts)


@pytest.mark.wide
def test_what_a_person_can_fix_is_reported_in_two_lines(
    spark: SparkSession, broker: Broker, options: Lines, name: str, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match="topic to read from does not exist"):
        run(spark, replace(options, input=(f"{name}-nowhere",), checkpoint=f"{options.checkpoint}-nowhere"))
    lines = some_lines("activity", 10, 0, 60, 40)
    write(broker, options.input[0], lines)
    run(spark, options)
    for _ in range(2):  # a run that is refused leaves nothing that lets the next one in
        with pytest.raises(PipelineError, match="has the results of an earlier run"):
            run(spark, replace(options, checkpoint=str(tmp_path / "another")))
    write(broker, options.input[0], lines)
    admin = admin_client(broker.bootstrap)
    parts = [TopicPartition(options.input[0], number, 30) for number in (0, 1)]
    for future in admin.delete_records(parts).values():
        future.result(DEADLINE_S)
    with pytest.raises(PipelineError, match="needs are gone"):
        run(spark, options)
    assert isinstance(run(spark, replace(options, allow_data_loss=True)), Report)


def arguments(options: Lines) -> list[str]:
    """Of the command that runs the pipeline with `options`."""
    own = options.own
    given = {"format": own.format, "window": own.window, "watermark": own.watermark, "session-gap": own.session_gap}
    parts = [part for name, value in given.items() for part in (f"--{name}", value)]
    return command(ACTIVITY, options, *parts, "--top", str(own.top))


@pytest.mark.wide
def test_the_command_follows_until_it_is_asked_to_stop_and_another_run_goes_on(
    spark: SparkSession, broker: Broker, options: Lines, tmp_path: Path
) -> None:
    expected = recount()
    first, second = some_lines("activity", 11, 0, 60, 80), some_lines("activity", 12, 55, 60, 80)
    log = tmp_path / "command.log"
    env = {**os.environ, **ENV}
    with log.open("wb") as out:
        following = replace(options, run=Run.FOLLOW, every="1 second", master="local[1]")
        job = [sys.executable, "-m", "kpybroker.pipelines", *arguments(following)]
        process = subprocess.Popen(job, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=env)
    try:
        places = write(broker, options.input[0], first)
        expected.batch(as_events("activity", first, places))

        def counted() -> bool:
            assert process.poll() is None, log.read_text()
            text = log.read_text()
            return "page_counts: " in text and "sessions: " in text and "top_pages: " in text

        eventually(counted, "results of the first lines", 240)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    compare(spark, broker, options, expected)
    assert f"{len(first)} records read, 0 of them broken" in log.read_text()
    places = write(broker, options.input[0], second)
    expected.batch(as_events("activity", second, places))
    run(spark, options)
    compare(spark, broker, options, expected)


@pytest.mark.wide
def test_the_demo_shows_what_is_in_a_log(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    lines = some_lines("access", 13, 0, 300, 200)
    log = tmp_path / "access.log"
    log.write_text("\n".join(lines))
    more = ["--log", str(log), "--bootstrap-servers", broker.bootstrap, "--jars", str(jars_dir("spark-4.0.0"))]
    more += ["--funnel", "/*,/*", "--picture", str(tmp_path / "activity.svg")]
    done = run_process([sys.executable, "-m", "kpybroker.pipelines", "demo", "activity", *more], deadline_s=300)
    assert "Sessions that came to each step of the funnel" in (tmp_path / "activity.svg").read_text()
    expected = Recount(24 * 60 * MINUTE_MS, LATENESS * MINUTE_MS, 30 * MINUTE_MS, TOP)
    events = as_events("access", lines, [(0, n) for n in range(len(lines))])
    expected.batch(events, millis(END_OF_TIME))
    pages = {count.page: count.events for count in expected.counts}
    best = min(pages, key=lambda page: (-pages[page], page))
    assert [best, str(pages[best])] in [line.split() for line in done.out.splitlines()]
    said = f"200 lines, 200 events; {len(pages)} pages in 1 windows; {len(expected.sessions)} sessions."
    assert said in done.out
