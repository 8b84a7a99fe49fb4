"""The demo without Spark: its broker, its input, its output.

`compat_tests/spark/pipelines/activity/test_pipeline.py` runs all of it.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from kpybroker.pipelines.__main__ import main
from kpybroker.pipelines.activity.demo import parse
from kpybroker.pipelines.activity.log import open_log
from kpybroker.pipelines.activity.tables import tables
from kpybroker.pipelines.demo.broker import broker
from kpybroker.pipelines.demo.feeding import Progress, feed
from kpybroker.pipelines.demo.tables import read_json
from kpybroker.pipelines.errors import PipelineError
from tests.pipelines.activity.test_formats import DPKG

WINDOW = {"window_start": "2024-03-05T00:00:00.000Z", "window_end": "2024-03-06T00:00:00.000Z"}


@pytest.mark.not_quick
def test_the_broker_of_the_demo_receives_the_log_and_is_stopped_afterwards(tmp_path: Path) -> None:
    lines = [DPKG, DPKG.replace("installed", "unpacked"), "æøå"] * 50
    (tmp_path / "dpkg.log").write_text("\n".join(lines))
    log = open_log(tmp_path / "dpkg.log", None)
    seen: list[int] = []
    with broker(parse([]).kpybroker, tmp_path / "broker.log") as bootstrap:
        feed(bootstrap, "lines", log.read(), log.lines, seen.append)
        feed(bootstrap, "results", [json.dumps({"n": n}) for n in range(3)], 3, lambda _done: None)
        with pytest.raises(json.JSONDecodeError):
            read_json(bootstrap, "results")  # its last record is the heartbeat, which is no JSON
        assert read_json(bootstrap, "missing") == []
    assert seen == [*range(1, 151), 150]
    with pytest.raises(OSError):
        __import__("socket").create_connection(("127.0.0.1", int(bootstrap.rpartition(":")[2])), 1)


@pytest.mark.not_quick
def test_a_broker_that_cannot_start_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(PipelineError, match="Cannot start /nowhere/kpybroker: No such file"),
        broker("/nowhere/kpybroker", tmp_path / "log"),
    ):
        pass
    with pytest.raises(PipelineError, match="did not start"), broker("false", tmp_path / "log"):
        pass


def test_a_missing_log_ends_with_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "activity", "--log", "/nowhere/x.log"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "kpybroker: The log /nowhere/x.log does not exist.",
        "fix: Name a file or a folder: make demo LOG=/path/to/access.log",
    ]


def test_progress_is_a_line_for_each_quarter_without_a_terminal() -> None:
    out = io.StringIO()
    progress = Progress("fed", 8, out)
    for done in range(9):
        progress.at(done)
    assert [line.split("]")[1].split("%")[0].strip() for line in out.getvalue().splitlines()] == [
        "0",
        "25",
        "50",
        "75",
        "100",
    ]


def test_tables_add_up() -> None:
    counts = [{**WINDOW, "page": page, "events": events} for page, events in (("/b", 4), ("/a", 12))]
    tops = [{**WINDOW, "rank": 1, "page": "/a", "events": 12}, {**WINDOW, "rank": 2, "page": "/b", "events": 4}]
    session: dict[str, object] = {
        "visitor": "v" * 60,
        "session_start": "2024-03-05T01:02:03.004Z",
        "session_end": "2024-03-05T02:00:00.000Z",
    }
    session |= {"events": 16, "pages": 2, "first_page": "/a", "last_page": "/b"}
    text = tables({"page-counts": counts, "top-pages": tops, "sessions": [session]}, 17)
    assert "  /a        12\n  /b         4" in text
    assert "  2024-03-05 00:00:00  2024-03-06 00:00:00      16  /a            12" in text
    assert f"  {'v' * 47}…  2024-03-05 01:02:03  2024-03-05 02:00:00      16      2  /a          /b" in text
    assert text.endswith("17 lines, 16 events; 2 pages in 1 windows; 1 sessions.")
