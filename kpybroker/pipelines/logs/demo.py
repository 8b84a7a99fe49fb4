"""The pipeline on real logs: of two brokers, and of three services that handle orders through them; one fails a while.

    python -m kpybroker.pipelines demo logs [--seconds 24]

It stops everything that it starts, and writes to a temporary directory only.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kpybroker.pipelines.demo.broker import broker
from kpybroker.pipelines.demo.feeding import DELIVERY_SECONDS_MAX, END_OF_TIME, Progress
from kpybroker.pipelines.demo.options import demo_parser
from kpybroker.pipelines.demo.pictures import check_picture, save_picture
from kpybroker.pipelines.demo.spark import command, run_spark
from kpybroker.pipelines.demo.tables import Row, read_json, table
from kpybroker.pipelines.logs.picture import ERRORS, panels, save_lines
from kpybroker.pipelines.logs.services import SERVICES, running
from kpybroker.pipelines.logs.source import POLL_S, Shipper, Source
from kpybroker.pipelines.runtime.event_time import HEARTBEAT_KEY

TOPIC = "logs"
WINDOW_S, BURST_ERRORS = 2, 5
FAILS_FROM, FAILS_TO = 0.55, 0.75
SHOWN = 6


def demo(arguments: Sequence[str]) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    parser = demo_parser("logs", __doc__)
    parser.add_argument("--seconds", type=int, default=24, help="how long the services run (default 24)")
    options = parser.parse_args(arguments)
    check_picture(options.picture)
    os.environ["TZ"] = "UTC"  # brokers log local time without a zone
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        logs = {name: place / f"{name}.log" for name in ("broker-orders", "broker-billing", *SERVICES)}
        with (
            broker(options.kpybroker, logs["broker-orders"]) as orders,
            broker(options.kpybroker, logs["broker-billing"]) as billing,
        ):
            print(
                f"Two kpybrokers listen at {orders} and {billing}; their logs, and those of services, go to the first"
            )
            _serve_and_ship(orders, billing, logs, place, options.seconds)
            _compute(orders, options.jars, place)
            found = {name: read_json(orders, f"demo-{name}") for name in ("events", "correlated", "bursts")}
            show(found["events"], found["correlated"], found["bursts"])
            bursts = sorted(found["bursts"], key=lambda row: str(row["burst_start"]))
            lines = save_lines(options.picture, found["events"], bursts)
            save_picture(options.picture, *panels(found["events"], bursts, WINDOW_S, lines))
    print("The brokers have stopped; their data is removed.")


def _serve_and_ship(orders: str, billing: str, logs: dict[str, Path], place: Path, seconds: int) -> None:
    """Run the services for so long and ship all logs at the same time, then the heartbeat that closes them."""
    from confluent_kafka import Producer

    sources = [Source(path, name, "demo") for name, path in logs.items()]
    shipper = Shipper({"bootstrap.servers": orders}, TOPIC, sources, place / "positions.json")
    progress = Progress("  shipping", seconds, sys.stdout)
    began = time.monotonic()

    def passed() -> float:
        return time.monotonic() - began

    with running(orders, billing, place, lambda: not FAILS_FROM <= passed() / seconds < FAILS_TO):
        while passed() < seconds:
            shipper.send()
            progress.at(int(passed()))
            time.sleep(POLL_S)
    shipper.send(last=True)
    progress.at(seconds)
    producer = Producer({"bootstrap.servers": orders})
    producer.produce(TOPIC, END_OF_TIME, HEARTBEAT_KEY)
    producer.flush(DELIVERY_SECONDS_MAX)


def _compute(bootstrap: str, jars: str | None, place: Path) -> None:
    own = ["--input", TOPIC, "--output", "topics:demo", "--output", str(place / "results")]
    own += ["--checkpoint", str(place / "checkpoint"), "--window", f"{WINDOW_S} seconds", "--watermark", "5 seconds"]
    own += ["--correlation-gap", "5 seconds", "--burst-errors", str(BURST_ERRORS)]
    job = command("logs", bootstrap, jars, *own)
    print(f"\nSpark, from lines to events, requests and bursts:\n  {shlex.join(job)}", flush=True)
    start = time.monotonic()
    run_spark(job, place)
    print(f"  done after {time.monotonic() - start:.1f} s\n")


def show(events: Sequence[Row], requests: Sequence[Row], bursts: Sequence[Row]) -> None:
    """Print events by service, kinds of requests, and the bursts."""
    count = Counter(row["service"] for row in events)
    errors = Counter(row["service"] for row in events if row.get("level") in ERRORS)
    formats = {row["service"]: row["format"] for row in events}
    services = [(name, formats[name], number, errors[name]) for name, number in count.most_common()]
    print(table("Services", ("service", "format", "events", "errors"), services))
    routes = Counter((" > ".join(row["services"]), row.get("worst", "-")) for row in requests)
    kinds = [(route, worst, number) for (route, worst), number in routes.most_common(SHOWN)]
    print(f"\n{table('Requests, by the services that they came through', ('services', 'worst', 'requests'), kinds)}")
    rows = [
        (
            *(row[name][11:19] for name in ("burst_start", "burst_end")),
            *(row["service"], row["errors"], row["usual"], row.get("sample", "-")),
        )
        for row in sorted(bursts, key=lambda row: str(row["burst_start"]))
    ]
    heads = ("from", "to", "service", "errors", "usual", "the first")
    print(f"\n{table('Bursts of errors', heads, rows)}\n")
    print(f"{len(events)} events, {len(requests)} requests, {len(bursts)} bursts.")
