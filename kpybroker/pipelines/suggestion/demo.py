"""The pipeline on purchases: suggestions by co-purchases and by ALS, a service that has them, and how good they are.

    python -m kpybroker.pipelines demo suggestion [--purchases FILE]

Without a file, purchases with known tastes are made. It stops everything that it starts, and writes to a temporary
directory only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from kpybroker.pipelines.demo.broker import STOP_SECONDS_MAX, broker
from kpybroker.pipelines.demo.feeding import Progress, feed
from kpybroker.pipelines.demo.options import demo_parser
from kpybroker.pipelines.demo.pictures import check_picture, save_picture
from kpybroker.pipelines.demo.spark import command, run_spark
from kpybroker.pipelines.demo.tables import Row, read_json, table
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.suggestion.generator import Workload, lines
from kpybroker.pipelines.suggestion.pictures import heat_map, hit_rates
from kpybroker.pipelines.suggestion.quality import (
    FIRST,
    Quality,
    Split,
    by_als,
    by_co_purchases,
    by_popularity,
    measure,
    split,
)
from kpybroker.pipelines.suggestion.service import READY

TOPIC = "purchases"
TOPICS = ("demo-suggestions", "demo-user-suggestions")
START = datetime(2024, 2, 29, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEED, WEEKS = 7, 8
SLIDE = timedelta(weeks=WEEKS // 2)
LATE = timedelta(hours=2)
"""Longer than a basket stays open and a line may be late."""
RESPONSE_SECONDS_MAX = 30.0
ASKED = 3
REQUIRED = ("time", "user", "basket", "product")


def demo(arguments: Sequence[str]) -> None:
    """The whole demo. Raises `PipelineError` for what the user can fix."""
    parser = demo_parser("suggestion", __doc__)
    text = "lines of your own: JSON with time, user, basket and product"
    parser.add_argument("--purchases", metavar="FILE", help=text)
    options = parser.parse_args(arguments)
    check_picture(options.picture)
    given = list(lines(Workload(SEED, START, WEEKS))) if options.purchases is None else _lines_of(options.purchases)
    rows = list(_understood(given))
    found = split(rows)
    if not found.wanted:
        raise PipelineError("No user has two baskets with something new in the last one.", "Give more purchases.", 2)
    with tempfile.TemporaryDirectory(prefix="kpybroker-demo-") as directory:
        place = Path(directory)
        with broker(options.kpybroker, place / "broker.log") as bootstrap:
            print(f"kpybroker listens at {bootstrap}")
            _write(bootstrap, given, found)
            _compute(bootstrap, options.jars, place, found)
            with _service(bootstrap, place) as address:
                asked = _asked(address, found)
            suggestions = [_by_key(bootstrap, topic) for topic in TOPICS]
    qualities = show(found, asked, *suggestions)
    save_picture(options.picture, hit_rates(qualities), heat_map(found.train))
    print("The broker has stopped; its data is removed.")


def _lines_of(file: str) -> list[str]:
    try:
        return Path(file).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise PipelineError(f"{file} cannot be read: {reason}.", "Name a file of JSON lines.", 2) from None


def _understood(given: Sequence[str]) -> Iterator[Row]:
    """The purchases among the lines, for the comparison; the pipeline judges for itself."""
    for line in given:
        try:
            row = json.loads(line)
            if all(row[name] for name in REQUIRED) and row.get("quantity", 1) > 0:
                yield {**row, "time": _time(row).isoformat()}
        except (ValueError, TypeError, KeyError):
            continue


def _time(row: Mapping[str, Any]) -> datetime:
    time = datetime.fromisoformat(row["time"])
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _write(bootstrap: str, given: Sequence[str], found: Split) -> None:
    """All lines but those of the baskets that are held out, and the heartbeat that closes the last whole window."""

    def is_held(line: str) -> bool:
        return any((row["user"], row["basket"]) in found.held for row in _understood([line]))

    train = [line for line in given if not is_held(line)]
    print(f"{len(train):,} lines; the last baskets of {len(found.held)} users are held out")
    progress = Progress("  purchases", len(train), sys.stdout)
    feed(bootstrap, TOPIC, train, len(train), progress.at, _close_at(found).isoformat())


def _window_end(found: Split) -> datetime:
    """The first beginning of a window after the last basket."""
    last = max(_time(row) for row in found.train) + timedelta(hours=1)
    return EPOCH + -(-(last - EPOCH) // SLIDE) * SLIDE


def _close_at(found: Split) -> datetime:
    return _window_end(found) + LATE


def _window(found: Split) -> timedelta:
    """So long that one window has all the baskets."""
    first = min(_time(row) for row in found.train)
    return -(-(_window_end(found) - first) // SLIDE) * SLIDE


def _compute(bootstrap: str, jars: str | None, place: Path, found: Split) -> None:
    common = ["--input", TOPIC, "--output", "topics:demo", "--top", "20"]
    print("\nSpark, from purchases to what is bought together, as a stream:", flush=True)
    windows = ["--window", f"{_window(found).days} days", "--slide", f"{SLIDE.days} days"]
    run_spark(
        command("suggestion", bootstrap, jars, *common, *windows, "--checkpoint", str(place / "checkpoint")), place
    )
    print("\nSpark, from all purchases to what each user may want, by ALS:", flush=True)
    run_spark(command("suggestion", bootstrap, jars, *common, "--run", "whole", "--model", "als"), place)


@contextmanager
def _service(bootstrap: str, place: Path) -> Iterator[str]:
    """Start the service on the two topics; yields its address."""
    topics = [part for topic in TOPICS for part in ("--topic", topic)]
    module = [sys.executable, "-m", "kpybroker.pipelines.suggestion.service"]
    with (place / "service.log").open("wb") as log:
        whole = [*module, "--bootstrap-servers", bootstrap, *topics, "--port", "0"]
        process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().strip()
            if not ready.startswith(READY):
                print((place / "service.log").read_text(errors="replace").strip(), file=sys.stderr)
                raise PipelineError("The service did not start.", "See its messages above.")
            print(f"\n{ready}")
            yield ready.removeprefix(READY).split()[0].rstrip("/")
        finally:
            process.terminate()
            try:
                process.communicate(timeout=STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _asked(address: str, found: Split) -> list[tuple[str, Row]]:
    """What the service says of the products in most baskets and of the first users: path and response."""
    popular = by_count(found.train)[:ASKED]
    paths = [f"/products/{quote(product)}" for product in popular]
    paths += [f"/users/{quote(user)}" for user in sorted(found.wanted)[:ASKED]]
    responses = []
    for path in paths:
        with urlopen(f"{address}{path}", timeout=RESPONSE_SECONDS_MAX) as page:
            responses.append((path, json.loads(page.read())))
    return responses


def by_count(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Products, those in most baskets first."""
    counts = Counter(product for _, _, product in {(row["user"], row["basket"], row["product"]) for row in rows})
    return sorted(counts, key=lambda product: (-counts[product], product))


def _by_key(bootstrap: str, topic: str) -> dict[str, list[Row]]:
    """The suggestions of the last record of each product or user."""
    kind = "user" if topic == TOPICS[1] else "product"
    return {row[kind]: row["suggestions"] for row in read_json(bootstrap, topic)}


def show(
    found: Split,
    asked: Sequence[tuple[str, Row]],
    of_products: Mapping[str, Sequence[Row]],
    of_users: Mapping[str, Sequence[Row]],
) -> list[Quality]:
    """Print what the service said, and the quality of each method."""
    rows = [(path, ", ".join(one["product"] for one in row["suggestions"][:4])) for path, row in asked]
    print(f"\n{table('The service', ('GET', 'first suggestions'), rows)}\n")
    qualities = [
        measure("popularity", found, by_popularity(found)),
        measure("co-purchases", found, by_co_purchases(found, of_products)),
        measure("als", found, by_als(found, of_users)),
    ]
    cells = [
        (one.method, one.users, one.hits, *(f"{x:.3f}" for x in (one.hit_rate, one.recall, one.reciprocal_rank)))
        for one in qualities
    ]
    heads = ("method", "users", "hits", f"hit rate@{FIRST}", f"recall@{FIRST}", f"MRR@{FIRST}")
    print(table("New products of the last baskets, among the first ten", heads, cells))
    wanted = sum(map(len, found.wanted.values()))
    print(
        f"\n{wanted} products were to be found; {len(of_products)} products and {len(of_users)} users have suggestions."
    )
    return qualities
