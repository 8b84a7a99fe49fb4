"""The output of the demo: top pages, windows and sessions as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kpybroker.pipelines.demo.tables import Row, table

RESULTS = ("page-counts", "top-pages", "sessions")
ROWS_MAX = 10


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def tables(results: Mapping[str, Sequence[Row]], lines: int) -> str:
    """The text that the demo prints: the top pages, windows and sessions of `results`, and their totals."""
    counts, tops, sessions = (results[name] for name in RESULTS)
    pages: Counter[str] = Counter()
    windows: Counter[tuple[str, str]] = Counter()
    for row in counts:
        pages[row["page"]] += row["events"]
        windows[row["window_start"], row["window_end"]] += row["events"]
    first = {row["window_start"]: row for row in tops if row["rank"] == 1}
    events = sum(pages.values())
    busiest = [
        (_time(start), _time(end), count, first[start]["page"], first[start]["events"])
        for (start, end), count in windows.most_common(ROWS_MAX)
    ]
    longest = sorted(sessions, key=lambda row: (-row["events"], row["session_start"]))[:ROWS_MAX]
    parts = [
        table("Pages with the most events, in the whole log", ("page", "events"), pages.most_common(ROWS_MAX)),
        table("Busiest windows, and each one's first page", ("from", "to", "events", "page", "its events"), busiest),
        table(
            "Sessions with the most events",
            ("visitor", "from", "to", "events", "pages", "first page", "last page"),
            [
                (
                    row["visitor"],
                    _time(row["session_start"]),
                    _time(row["session_end"]),
                    row["events"],
                    row["pages"],
                    row["first_page"],
                    row["last_page"],
                )
                for row in longest
            ],
        ),
        f"{lines} lines, {events} events; {len(pages)} pages in {len(windows)} windows; {len(sessions)} sessions.",
    ]
    return "\n\n".join(parts)
