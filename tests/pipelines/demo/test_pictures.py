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
from kpybroker.pipelines.operations import picture as operations

FILE_BYTES_MAX = 80_000
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
    return activity.panels({"page-counts": counts, "sessions": sessions})


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


PICTURES: dict[str, tuple[Callable[[int], Sequence[Panel]], list[str]]] = {
    "activity": (_activity, ["Events of each window, by page", "all others", "Sessions: 40"]),
    "operations": (_operations, ["host-0: swap", "host-0: cpu", "alert, and the usual value"]),
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
