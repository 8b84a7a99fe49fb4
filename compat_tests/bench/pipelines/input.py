"""What each pipeline reads in `make bench-pipelines`: as many records as one wants, the same for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, repeat

from kpybroker.pipelines.ledger.generator import transfers
from kpybroker.pipelines.suggestion import generator as suggestion
from kpybroker.pipelines.warehouse import generator as warehouse
from tests.pipelines.changes import generator as changes
from tests.pipelines.logs import generator as logs
from tests.pipelines.operations.generator import Workload, lines

START = datetime(2024, 3, 5, 8, tzinfo=UTC)
EVENTS_A_SECOND, PAGES, VISITORS = 50, 200, 2_000
HOSTS = 20
LINES_A_USER = 25
REQUESTS_A_MINUTE, LINES_A_MINUTE = 600, 2_000
ROWS_OF_A_TABLE = 50

Headers = Sequence[tuple[str, bytes]]
Records = Iterator[tuple[str | bytes | None, str | bytes | None, Headers]]


@dataclass(frozen=True, slots=True)
class Input:
    """`records(count, seed)` are keys, values and headers; `options` those that the pipeline needs."""

    records: Callable[[int, int], Records]
    options: tuple[str, ...] = ()


def _activity(count: int, seed: int) -> Records:
    """Events of a site, more on some pages than on others."""
    dice = random.Random(seed)
    for n in range(count):
        when = START + timedelta(seconds=n / EVENTS_A_SECOND)
        page = f"/page/{min(dice.randrange(PAGES), dice.randrange(PAGES))}"
        visitor = f"visitor-{dice.randrange(VISITORS)}"
        event = {"timestamp": when.isoformat(), "page": page, "user": visitor, "action": "view"}
        yield visitor, json.dumps(event), ()


def _operations(count: int, seed: int) -> Records:
    series = HOSTS * 5
    plan = Workload(seed, START, minutes=count // (series * 6) + 2, hosts=HOSTS)
    for line in islice(lines(plan), count):
        yield None, line, ()


def _ledger(count: int, seed: int) -> Records:
    """Entries without transactions, which cost the writer and not the reader."""
    entries = (entry for transfer in transfers(seed, count) for entry in transfer.entries("t"))
    for account, value in islice(entries, count):
        yield account, value, ()


def _logs(count: int, seed: int) -> Records:
    """As the shipper writes them: in the formats of five services, with headers that say whose they are."""
    plan = logs.Workload(seed, START, minutes=count // LINES_A_MINUTE + 20, requests=REQUESTS_A_MINUTE)
    yield from islice(logs.records(plan), count)


def _suggestion(count: int, seed: int) -> Records:
    plan = suggestion.Workload(seed, START, users=count // LINES_A_USER + 50)
    for line in islice(suggestion.lines(plan), count):
        yield None, line, ()


def _warehouse(count: int, seed: int) -> Records:
    for one in warehouse.lines(seed, count):
        yield one.key, one.value, ()


def _changes(count: int, seed: int) -> Records:
    """Changes of one table, those of a snapshot first."""
    shop = changes.Shop(seed)
    wanted = changes.topic_of(changes.ORDERS)
    given = chain(shop.snapshot(ROWS_OF_A_TABLE), chain.from_iterable(shop.transaction() for _ in repeat(None)))
    for record in islice((one for one in given if one.topic == wanted), count):
        shop.history.clear()  # what the tables were after each transaction, which only tests ask for
        yield record.key, record.value, ()


SOURCE = "source"
"""No pipeline: records are read, and nothing is done with them."""
INPUTS: Mapping[str, Input] = {
    SOURCE: Input(_activity),
    "activity": Input(_activity, ("--format", "activity")),
    "operations": Input(_operations),
    "changes": Input(_changes),
    "ledger": Input(_ledger),
    "logs": Input(_logs),
    "suggestion": Input(_suggestion),
    "warehouse": Input(_warehouse),
}
"""By the name of the pipeline, each of the catalogue; the rows of a table are in this order."""
