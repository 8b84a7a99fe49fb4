"""Pictures: what is refused before the work begins, and that the same results give the same file."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kpybroker.pipelines.activity import picture as activity
from kpybroker.pipelines.demo.pictures import Panel, check_picture, save_picture
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.ledger import picture as ledger
from kpybroker.pipelines.ledger.generator import Written
from kpybroker.pipelines.logs import picture as logs
from kpybroker.pipelines.operations import picture as operations

FILE_BYTES_MAX = 120_000
LINK = "{http://www.w3.org/2000/svg}a"
TEXT = "{http://www.w3.org/2000/svg}text"


def _minute(number: int) -> str:
    return f"2024-03-05T08:{number:02d}:00.000Z"


def _activity(rows: int) -> Sequence[Panel]:
    counts = [
        {"window_start": _minute(n), "page": f"/page/{page}", "events": n + page}
        for n in range(rows)
        for page in range(9)
    ]
    sessions = [{"session_start": _minute(0), "session_end": _minute(n), "events": n + 1} for n in range(rows)]
    steps = ((1, "/", 90), (2, "/cart", 45), (3, "/paid", 9))
    funnels = [{"step": step, "page": page, "sessions": number} for step, page, number in steps] * 2 if rows else []
    return activity.panels({"page-counts": counts, "sessions": sessions, "funnels": funnels})


def _operations(rows: int) -> Sequence[Panel]:
    series = {"host": "host-0", "kind": "gauge"}
    values = [
        {**series, "name": name, "window_start": _minute(n), "value": float(n % 7)}
        for n in range(rows)
        for name in ("cpu", "disk", "memory", "net", "swap")
    ]
    values += [{**series, "name": "a.constant", "window_start": _minute(n), "value": 1.0} for n in range(rows)]
    # a silent one has no value
    values += [{**series, "name": "swap", "window_start": _minute(59)}] if rows else []
    alerts = [{**series, "name": "swap", "window_start": _minute(3), "value": 9.0, "expected": 2.5, "state": "high"}]
    return operations.panels(values, alerts if rows else [])


def _ledger(rows: int) -> Sequence[Panel]:
    turns = [Written(Counter(), broken=0, committed=n, aborted=n % 3) for n in range(rows)]
    return ledger.panels({f"account-{n}": (n - 20) * 100 for n in range(rows)}, turns)


OF_FUNNEL = ("Sessions by the hour in which they began, UTC", "2. /cart", "180, 100%", "90, 50%", "18, 10%")


def _log_events(rows: int) -> list[dict[str, Any]]:
    return [
        {
            "event_time": f"2024-03-05T08:00:{n % 60:02d}.000Z",
            "service": "pay" if n % 2 else "shop",
            "level": "ERROR" if 10 <= n % 60 < 30 else "INFO",
            "message": f"charge <{n}> & more",
            "logger": "pay.charge",
            "topic": "logs",
            "partition": 0,
            "offset": n,
        }
        for n in range(rows)
    ]


BURSTS = [
    {"burst_start": "2024-03-05T08:00:10.000Z", "burst_end": "2024-03-05T08:00:20.000Z", "service": "pay", "errors": 5}
]


def _logs(rows: int) -> Sequence[Panel]:
    return logs.panels(_log_events(rows), BURSTS if rows else [], 2, "p-lines.html")


PICTURES: dict[str, tuple[Callable[[int], Sequence[Panel]], list[str]]] = {
    "activity": (_activity, ["Events of each window, by page", "all others", "Sessions: 40", *OF_FUNNEL]),
    "operations": (_operations, ["host-0: swap", "host-0: cpu", "alert, and the usual value"]),
    "logs": (_logs, ["events in 2 seconds", "errors in 2 seconds", "burst: pay, 5 errors"]),
    "ledger": (_ledger, ["The largest balances of 40; the sum of all is -2000", "committed: 780", "aborted: 39"]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_same_results_give_the_same_file_with_its_text_as_text(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, expected = PICTURES[name]
    files = [tmp_path / "first.svg", tmp_path / "second.svg"]
    for file in files:
        check_picture(str(file))
        save_picture(str(file), *make(40))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) < FILE_BYTES_MAX
    texts = {element.text for element in ElementTree.parse(files[0]).iter(TEXT)}
    assert set(expected) <= texts
    assert capsys.readouterr().out.splitlines()[0] == f"The picture is {files[0]}"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_no_results_is_one_too(name: str, tmp_path: Path) -> None:
    save_picture(str(tmp_path / "empty.png"), *PICTURES[name][0](0))
    assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")


def test_most_alerts_come_first(tmp_path: Path) -> None:
    panels: Sequence[Any] = _operations(5)
    assert [panel.keywords["series"][1] for panel in panels] == ["swap", "cpu", "disk", "memory"]


def test_a_burst_leads_to_its_lines_on_a_page_next_to_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.svg"
    assert logs.save_lines(str(file), _log_events(60), BURSTS) == "p-lines.html"
    save_picture(str(file), *_logs(60))
    links = [element.attrib["{http://www.w3.org/1999/xlink}href"] for element in ElementTree.parse(file).iter(LINK)]
    assert links == ["p-lines.html#burst-1"]
    page = (tmp_path / "p-lines.html").read_text(encoding="utf-8")
    assert "<h2 id=burst-1>pay, 5 errors, 2024-03-05T08:00:10.000Z to" in page
    lines = page.partition("<pre>\n")[2].partition("\n</pre>")[0].splitlines()
    assert [line.split(" ")[1] for line in lines] == [f"logs-0@{n}" for n in range(11, 20, 2)]
    assert lines[0].endswith("ERROR pay.charge charge &lt;11&gt; &amp; more")
    assert logs.save_lines(None, [], BURSTS) == logs.save_lines(str(file), [], []) == ""
    assert "The lines of the bursts are in" in capsys.readouterr().out


def test_no_picture_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    check_picture(None)
    save_picture(None, *_ledger(3))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("results.pdf", "results.pdf is not a kind of picture that can be written.\nfix: Use .svg or .png."),
        ("results", "results is not a kind of picture that can be written.\nfix: Use .svg or .png."),
        ("nowhere/results.svg", "There is no folder for nowhere/results.svg.\nfix: Make it first, or choose another."),
    ],
)
def test_what_could_not_be_written_is_refused(
    file: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipelineError) as caught:
        check_picture(file)
    assert (str(caught.value), caught.value.exit_code) == (f"kpybroker: {message}", 2)


def test_without_matplotlib_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PipelineError, match=r"needs matplotlib.\nfix: pip install 'kpybroker\[pictures\]'"):
        check_picture(str(tmp_path / "results.svg"))
