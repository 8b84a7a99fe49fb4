"""`kpybroker dev`: its defaults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kpybroker.cli import dev
from kpybroker.cli.options import DevOptions
from tests.support.loggers import kept_logging


@pytest.fixture(autouse=True)
def undo() -> Iterator[None]:
    with kept_logging():
        yield


def test_ephemeral_and_a_place_contradict_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, check=lambda error: error.code == 2):
        dev.run_dev(DevOptions(0, "127.0.0.1", "/data", ephemeral=True))
    assert capsys.readouterr().err == (
        "kpybroker: --ephemeral keeps nothing, yet --data-dir names a data directory\nfix: leave one of the two out\n"
    )


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (DevOptions(0, "127.0.0.1", processes=True), "--processes is for several brokers, and there is one"),
        (DevOptions(0, "127.0.0.1", processes=True, brokers=2, control=0), "--control is for brokers in one process"),
    ],
)
def test_what_processes_cannot_have_is_two_lines(
    options: DevOptions, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, check=lambda error: error.code == 2):
        dev.run_dev(options)
    first, fix = capsys.readouterr().err.splitlines()
    assert first.startswith(f"kpybroker: {cause}")
    assert fix.startswith("fix: ")
