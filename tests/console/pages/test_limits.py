"""The limits that the guide names are those of the code."""

from __future__ import annotations

from pathlib import Path

from kpybroker.console.pages import messages as pages
from kpybroker.console.queries import bulk, decoding, messages, produce, samples, topics
from kpybroker.console.queries.outside import json_filter_worker, json_filters
from kpybroker.console.queries.pages import ROWS_MAX
from kpybroker.console.queries.records import downloads
from kpybroker.console.web import follow, live

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "console.md"


def number(count: float) -> str:
    """As the guide writes it: four digits and more in groups of three."""
    return f"{count:,.0f}".replace(",", " ")


def mebibytes(size: int) -> str:
    return f"{size >> 20} MiB"


def rows() -> dict[str, str]:
    steps = {name: one.step_s for name, one in samples.RANGES.items()}
    return {
        "one request to the cluster": f"{live.REQUEST_S_MAX:g} s, or `--timeout` if that is shorter",
        "one page": f"{live.PAGE_S_MAX:g} s; then it says that the cluster does not respond",
        "all requests of one page together": f"{live.PAGE_S_MAX * live.ASKING:g} s; "
        "a part that was not asked by then says so",
        "pages that wait for the cluster at the same time": number(live.WORKING_MAX),
        "rows of a list": f"{ROWS_MAX} a page",
        "partitions whose offsets a page asks for": f"{number(topics.PLACES_MAX)}; lists with more show no offsets",
        "messages that a page shows; reads before it is shown": f"{messages.SHOWN_MAX}; "
        f"{number(messages.SCANNED_MAX)}, {mebibytes(messages.SCANNED_BYTES_MAX)} or {messages.SCAN_S_MAX:g} s, "
        "whichever is first",
        "partitions that one page reads messages from": number(messages.PLACES_MAX),
        "characters of a value in a list; on its own page": f"{pages.PREVIEW}; {number(pages.WHOLE)}",
        "JSON that is parsed": mebibytes(decoding.JSON_BYTES_MAX),
        "a JSONPath": f"{json_filters.RECORD_S_MAX:g} s for one message, "
        f"{json_filter_worker.MEMORY_BYTES_MAX >> 30} GiB; {json_filters.WORKERS_MAX} messages at once",
        "messages that are produced at once": f"{number(bulk.MESSAGES_MAX)}, {mebibytes(produce.MESSAGE_BYTES_MAX)}; "
        "a wrong line stops all",
        "a download": f"{number(downloads.RECORDS_MAX)} messages, {mebibytes(downloads.BYTES_MAX)} "
        f"or {downloads.S_MAX:g} s",
        "pages that follow or search messages": number(follow.FOLLOWERS_MAX),
        "remembered numbers for rates and charts": f"{number(samples.KEYS_MAX)} topics and charts; of each every "
        f"{steps['15m']:g} s for 15 minutes, {steps['1h']:g} s for an hour, {steps['6h']:g} s for six",
    }


def test_the_guide_has_the_limits_of_the_code() -> None:
    text = GUIDE.read_text().split("## Limits", 1)[1].split("\n\nA list shows", 1)[0]
    table = dict(line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| "))
    for name, limit in rows().items():
        assert table.get(name) == limit, name
