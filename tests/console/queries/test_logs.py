"""Which log lines a page shows."""

from __future__ import annotations

import pytest

from kpybroker.console.queries import logs
from kpybroker.console.queries.logs import Filter, Line, chosen, parsed

LINES = [
    "[2026-01-31 12:00:00,001] INFO [KafkaServer id=0] started (kafka.server.KafkaServer)",
    "[2026-01-31 12:00:00,002] WARN Refused it [client_id=app correlation_id=7 api=Produce] (kafka.controller)\n"
    "Traceback (most recent call last)\n  an error (here)",
    '[2026-01-31 12:00:00,003] DEBUG Completed request:{"correlationId":71,"clientId":"app"} (kafka.request.logger)',
    "no line of Kafka",
]


def test_a_line_is_taken_apart_with_its_traceback() -> None:
    line = parsed(LINES[1])
    assert (line.time, line.level, line.logger) == ("2026-01-31 12:00:00,002", "WARN", "kafka.controller")
    assert line.text.endswith("  an error (here)")
    assert parsed(LINES[3]) == Line("", "", "", LINES[3])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), [3, 2, 1, 0]),
        (Filter(level="WARN"), [3, 1]),
        (Filter(logger="kafka.server"), [0]),
        (Filter(logger="kafka.serv"), []),
        (Filter(text="STARTED"), [0]),
        (Filter(correlation="7"), [1]),
        (Filter(correlation="71"), [2]),
        (Filter(client_id="app"), [2, 1]),
        (Filter(client_id="ap"), []),
    ],
)
def test_filters(wanted: Filter, expected: list[int]) -> None:
    found = [parsed(line) for line in LINES]
    assert chosen(found, wanted) == [found[number] for number in expected]


def test_lines_are_cut_counted_and_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SHOWN_MAX", 2)
    found = chosen([Line("", "", "", f"{n}\x1b\u202e" + "x" * 10_000) for n in range(5)], Filter())
    assert [line.text[0] for line in found] == ["4", "3"]
    assert all(len(line.text) < 4100 and "\x1b" not in line.text and "\u202e" not in line.text for line in found)
