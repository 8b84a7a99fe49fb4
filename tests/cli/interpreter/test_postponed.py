"""Modules that the command line loads at their first use only."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpybroker.cli.interpreter.postponed import is_postponed, postpone

NAME = "postponed_by_a_test"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a module of this name is found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


def imported() -> object:
    return importlib.import_module(NAME)


def test_it_runs_when_something_looks_into_it(place: Path) -> None:
    (place / f"{NAME}.py").write_text("import sys\nruns = [__name__]\nthis = sys.modules[__name__]\n")
    postpone([NAME])
    module = imported()
    assert is_postponed(NAME)
    assert module.runs == [NAME]  # type: ignore[attr-defined]
    assert not is_postponed(NAME)
    assert module.this is module  # type: ignore[attr-defined]
    assert imported() is module
    postpone([NAME])
    assert not is_postponed(NAME), "it is loaded already"


def test_a_name_that_it_lacks_is_missing_as_in_any_module(place: Path) -> None:
    (place / f"{NAME}.py").write_text(
        "def __getattr__(name):\n    return name if name == 'made' else exec('raise AttributeError')\n"
    )
    postpone([NAME])
    module = imported()
    assert not hasattr(module, "missing")
    assert module.made == "made"  # type: ignore[attr-defined]


def test_a_package_has_its_modules(place: Path) -> None:
    (place / NAME).mkdir()
    (place / NAME / "__init__.py").write_text(f"from {NAME}.inner import value\nfrom . import inner\n")
    (place / NAME / "inner.py").write_text("value = 7\n")
    postpone([NAME])
    assert imported().value == 7  # type: ignore[attr-defined]


def test_one_that_fails_is_tried_again(place: Path) -> None:
    source = place / f"{NAME}.py"
    source.write_text("import this_module_does_not_exist_anywhere\n")
    postpone([NAME])
    module = imported()
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="this_module_does_not_exist"):
            module.value  # type: ignore[attr-defined]  # noqa: B018


def test_one_that_cannot_be_found_stays_missing() -> None:
    postpone([NAME])
    with pytest.raises(ModuleNotFoundError):
        imported()


def test_another_thread_waits_until_it_is_whole(place: Path) -> None:
    """It is in the middle of its code when the other thread misses a name that comes later."""
    (place / f"{NAME}.py").write_text(
        "import threading\n"
        "found = []\n"
        "begun = threading.Event()\n"
        "def look():\n"
        "    begun.set()\n"
        "    import sys\n"
        "    found.append(sys.modules[__name__].last)\n"
        "thread = threading.Thread(target=look)\n"
        "thread.start()\n"
        "begun.wait()\n"
        "last = 'last'\n"
    )
    postpone([NAME])
    module = imported()
    assert module.last == "last"  # type: ignore[attr-defined]
    module.thread.join()  # type: ignore[attr-defined]
    assert module.found == ["last"]  # type: ignore[attr-defined]


@pytest.mark.not_quick
def test_a_broker_needs_none_of_them_until_something_asks_for_it() -> None:
    code = (
        "from kpybroker.cli.interpreter.postponed import POSTPONED, is_postponed, postpone\n"
        "postpone()\n"
        "import kpybroker.cli.main, kpybroker.cli.run, kpybroker.cli.dev, kpybroker.control.hosted\n"
        "import kpybroker.broker.app\n"
        "from kpybroker.broker.handlers.records import fetch, produce\n"
        "print(*(name for name in POSTPONED if not is_postponed(name)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
