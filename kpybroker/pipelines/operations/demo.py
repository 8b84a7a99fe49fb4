"""The pipeline on real input: this machine and a broker are sampled while a client loads the broker, with one burst.

    python -m kpybroker.pipelines demo operations [--seconds 40]

It stops everything that it starts, and writes to a temporary directory only.
"""

from __future__ import annotations

import shlex
import socket
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kpybroker.pipelines.demo.broker import broker
from kpybroker.pipelines.demo.feeding import END_OF_TIME, Progress
from kpybroker.pipelines.demo.options import demo_parser
from kpybroker.pipelines.demo.pictures import check_picture, save_picture
from kpybroker.pipelines.demo.spark import command, run_spark
from kpybroker.pipelines.demo.tables import Row, read_json, sparkline, table
from kpybroker.pipelines.operations.picture import panels
from kpybroker.pipelines.operations.source import lines, of_broker, of_machine
from kpybroker.pipelines.runtime.event_time import HEARTBEAT_KEY

TOPIC, LOADED = "samples", "loaded"
SAMPLE_S, WINDOW_S = 0.5, 2
BURST_FROM, BURST_TO = 0.6, 0.75
USUAL_RATE, BURST_RATE = 200, 5_000
BATCH_S = 0.05
DELIVERY_SECONDS_MAX = 60.0


def demo(arguments: Sequence[str]) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    parser = demo_parser("operations", __doc__)
    parser.add_argument("--seconds", type=int, default=40, help="how long to sample (default 40)")
    options = parser.parse_args(arguments)
    check_picture(options.picture)
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        metrics = _free_port()
        override = ("--override", f"kpybroker.metrics.port={metrics}")
        with broker(options.kpybroker, place / "broker.log", *override) as bootstrap:
            print(f"kpybroker listens at {bootstrap}, its metrics at port {metrics}")
            _sample(bootstrap, f"http://127.0.0.1:{metrics}/metrics", options.seconds)
            _compute(bootstrap, options.jars, place)
            values, alerts = read_json(bootstrap, "demo-values"), read_json(bootstrap, "demo-alerts")
            show(values, alerts)
            save_picture(options.picture, *panels(values, alerts))
    print("The broker has stopped; its data is removed.")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _sample(bootstrap: str, metrics: str, seconds: int) -> None:
    """Write samples of machine and broker for so long, under load, then the heartbeat that closes them."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    progress = Progress("  sampling", seconds, sys.stdout)
    began = time.monotonic()
    with _load(bootstrap, seconds):
        while (passed := time.monotonic() - began) < seconds:
            for line in (*lines(of_machine()), *lines(of_broker(metrics), "broker-0")):
                producer.produce(TOPIC, line)
            producer.poll(0)
            progress.at(int(passed))
            time.sleep(SAMPLE_S)
    producer.flush(DELIVERY_SECONDS_MAX)
    producer.produce(TOPIC, END_OF_TIME, HEARTBEAT_KEY)
    producer.flush(DELIVERY_SECONDS_MAX)
    progress.at(seconds)


@contextmanager
def _load(bootstrap: str, seconds: int) -> Iterator[None]:
    """A client that writes at a usual rate, and in the burst at another one."""
    from confluent_kafka import Producer

    ended = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        began = time.monotonic()
        while not ended.wait(BATCH_S):
            passed = (time.monotonic() - began) / seconds
            rate = BURST_RATE if BURST_FROM <= passed < BURST_TO else USUAL_RATE
            for _ in range(int(rate * BATCH_S)):
                producer.produce(LOADED, b"x" * 100)
            producer.poll(0)
        producer.flush(DELIVERY_SECONDS_MAX)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def _compute(bootstrap: str, jars: str | None, place: Path) -> None:
    own = ["--input", TOPIC, "--output", "topics:demo", "--output", str(place / "results")]
    own += ["--checkpoint", str(place / "checkpoint"), "--window", f"{WINDOW_S} seconds", "--watermark", "1 second"]
    job = command("operations", bootstrap, jars, *own)
    print(f"\nSpark, from samples to values and alerts:\n  {shlex.join(job)}", flush=True)
    start = time.monotonic()
    run_spark(job, place)
    print(f"  done after {time.monotonic() - start:.1f} s\n")


def show(values: Sequence[Row], alerts: Sequence[Row]) -> None:
    """Print each series as a line of bars, and the alerts."""
    series: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in values:
        if "value" in row:
            series[row["host"], row["name"], row["kind"]][row["window_start"]] = row["value"]
    found = []
    for (host, name, kind), by_start in sorted(series.items()):
        numbers = [by_start[start] for start in sorted(by_start)]
        unit = "a second" if kind == "counter" else ""
        found.append((host, name, sparkline(numbers), f"{min(numbers):,.4g}", f"{max(numbers):,.4g}", unit))
    print(table(f"Each {WINDOW_S} seconds", ("host", "series", "values", "least", "most", ""), found))
    rows = [
        (
            row["window_start"][11:19],
            row["host"],
            row["name"],
            row["state"],
            _number(row, "value"),
            _number(row, "expected"),
        )
        for row in sorted(alerts, key=lambda row: (row["window_start"], row["host"], row["name"]))
        if row["state"] != "silent"
    ]
    heads = ("from", "host", "series", "state", "value", "usual")
    print(f"\n{table('Alerts', heads, rows)}\n")
    print(f"{len(values)} values of {len(series)} series, {len(rows)} alerts.")


def _number(row: Row, name: str) -> str:
    return f"{row[name]:,.4g}" if name in row else "-"
