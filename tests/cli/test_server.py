"""`kpybroker server`: which source of a key overrides which."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG
from kpybroker.cli.server import run_server


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[run.Plan]]:
    """Collects the plans instead of running them, and restores logging afterwards."""
    plans: list[run.Plan] = []

    def collect(wanted: list[run.Plan]) -> int:
        plans.extend(wanted)
        return 0

    monkeypatch.setattr(run, "run", collect)
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    yield plans
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raising


def test_overrides_override_the_environment_and_that_the_file(tmp_path: Path, planned: list[run.Plan]) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\nbroker.id=1\nlog.dirs=/a\n")
    environment = {"KAFKA_NUM_PARTITIONS": "2", "KAFKA_BROKER_ID": "2", "KAFKA_HEAP_OPTS": "-Xmx1g"}
    assert run_server(str(file), environment, ["num.partitions=3"], "text", "WARN") == 0
    (plan,) = planned
    assert plan.config.get_int("num.partitions") == 3
    assert plan.config.get_int("broker.id") == 2
    assert plan.config.log_dirs == ("/a",)
    assert [note.key for note in plan.notes] == ["KAFKA_HEAP_OPTS"]


def test_a_file_is_not_needed(planned: list[run.Plan]) -> None:
    assert run_server(None, {"KAFKA_BROKER_ID": "7"}, [], "json", "INFO") == 0
    assert planned[0].config.get_int("broker.id") == 7


def test_an_error_names_its_source(tmp_path: Path, planned: list[run.Plan], capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=x\n")
    with pytest.raises(SystemExit, check=lambda error: error.code == EXIT_CONFIG):
        run_server(str(file), {}, [], "text", "INFO")
    assert capsys.readouterr().err == (
        "kpybroker: Invalid value x for configuration num.partitions: Not a number of type INT "
        f"(from {file})\n"
        "fix: set num.partitions to a whole number of at least 1 (default: 1), or leave it out\n"
    )
    assert planned == []
