"""The pipeline on real input: a broker, a real log written to it with a stock client, the Spark job, its results.

    python -m kpybroker.pipelines demo activity                      # this machine's /var/log/dpkg.log
    python -m kpybroker.pipelines demo activity --log access.log     # any file or folder; .gz is read too
    python -m kpybroker.pipelines demo activity --shop               # a made-up day of a shop, with its funnel

It stops everything that it starts, and writes to a temporary directory only. With --bootstrap-servers it uses a
running broker and leaves topics named `demo-*` there.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kpybroker.pipelines.activity import shop, tables
from kpybroker.pipelines.activity.formats import FORMATS
from kpybroker.pipelines.activity.log import Log, open_log
from kpybroker.pipelines.activity.picture import panels
from kpybroker.pipelines.demo.broker import broker
from kpybroker.pipelines.demo.feeding import Progress, feed
from kpybroker.pipelines.demo.options import demo_parser
from kpybroker.pipelines.demo.pictures import check_picture, save_picture
from kpybroker.pipelines.demo.spark import command, run_spark
from kpybroker.pipelines.demo.tables import read_json
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import check_reachable

DEFAULT_LOG = "/var/log/dpkg.log"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The command line of the demo. `format` None is guessed, `bootstrap_servers` None starts a broker."""

    log: str
    format: str | None
    window: str
    bootstrap_servers: str | None
    kpybroker: str
    jars: str | None
    picture: str | None = None
    funnel: str | None = None
    shop: bool = False


def parse(arguments: Sequence[str]) -> DemoOptions:
    """The options; argparse exits with 2 for a wrong argument."""
    parser = demo_parser("activity", __doc__)
    parser.add_argument("--log", default=DEFAULT_LOG, metavar="PATH", help="a file or a folder (default: dpkg's log)")
    parser.add_argument("--format", choices=list(FORMATS), help="of the lines (default: guessed)")
    parser.add_argument("--window", default="1 day", help="of the counts (default: 1 day)")
    parser.add_argument("--shop", action="store_true", help="a made-up day of a shop in place of a log")
    parser.add_argument("--funnel", metavar="PAGE,PAGE...", help="count the sessions that come to each page, in order")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="use this broker instead of starting one")
    return DemoOptions(**vars(parser.parse_args(arguments)))


def show(bootstrap: str, options: DemoOptions, place: Path, log: Log) -> None:
    """Write the log to the broker, run the job, print the results. `place` is the temporary directory."""
    name = f"demo-{uuid.uuid4().hex[:6]}" if options.bootstrap_servers else "demo"
    start = time.monotonic()
    progress = Progress("  feeding", log.lines, sys.stdout)
    feed(bootstrap, f"{name}-lines", log.read(), log.lines, progress.at)
    print(f"  {log.lines} lines are in the topic {name}-lines after {time.monotonic() - start:.1f} s\n")
    places = [
        "--output",
        str(place / "results"),
        "--output",
        f"topics:{name}",
        "--checkpoint",
        str(place / "checkpoint"),
    ]
    kind = ["--input", f"{name}-lines", "--format", log.format, "--window", options.window]
    kind += ["--funnel", options.funnel] if options.funnel else []
    job = command("activity", bootstrap, options.jars, *kind, *places)
    print(f"Spark, from topic to topics and Parquet:\n  {shlex.join(job)}", flush=True)
    start = time.monotonic()
    run_spark(job, place)
    print(f"  done after {time.monotonic() - start:.1f} s\n")
    results = {result: read_json(bootstrap, f"{name}-{result}") for result in tables.RESULTS}
    print(tables.tables(results, log.lines), flush=True)
    funnels = read_json(bootstrap, f"{name}-funnels") if options.funnel else []
    save_picture(options.picture, *panels({**results, "funnels": funnels}))


def demo(arguments: Sequence[str]) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    options = parse(arguments)
    check_picture(options.picture)
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise PipelineError("confluent-kafka is not installed.", "pip install 'kpybroker[tools]'") from None
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        if options.shop:
            funnel = options.funnel or shop.FUNNEL
            options = replace(options, log=str(shop.write(place)), window="1 hour", funnel=funnel)
        log = open_log(Path(options.log), options.format)
        print(f"{log.lines} lines of format '{log.format}' in {log.description}")
        if options.bootstrap_servers is not None:
            check_reachable(options.bootstrap_servers)
            show(options.bootstrap_servers, options, place, log)
            return
        with broker(options.kpybroker, place / "broker.log") as bootstrap:
            print(f"kpybroker listens at {bootstrap}")
            show(bootstrap, options, place, log)
    print("The broker has stopped; its data is removed.")
