"""What a user may give wrong, each in two lines before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.pipelines.__main__ import main
from kpybroker.pipelines.changes.connect import DEBEZIUM, RUNTIME, jars
from kpybroker.pipelines.changes.pipeline import CHANGES, ChangesOptions
from kpybroker.pipelines.demo import postgresql
from kpybroker.pipelines.errors import PipelineError, explain
from kpybroker.pipelines.runtime.options import parse

NEEDED = [
    "--bootstrap-servers",
    "127.0.0.1:9092",
    "--input",
    "shop.public.orders,shop.transaction",
    "--checkpoint",
    "/c",
]
DIRECTORY = ["--output", "/data"]


def test_the_defaults() -> None:
    assert parse(CHANGES, [*NEEDED, *DIRECTORY]).own == ChangesOptions()


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--output", "topics:out"], "The tables need one directory"),
        ([*DIRECTORY, "--output", "/other"], "The tables need one directory"),
        ([*DIRECTORY, "--transactions", "other"], "The topic other of --transactions is not read"),
        ([*DIRECTORY, "--value-format", "avro"], "Avro needs the schemas"),
        ([*DIRECTORY, "--schema-registry", "http://127.0.0.1:8081"], "--schema-registry is for Avro"),
        ([*DIRECTORY, "--versions", "1"], "One version is not enough"),
        ([*DIRECTORY, "--buckets", "0"], "not a number above 0"),
    ],
)
def test_wrong_options(arguments: list[str], cause: str) -> None:
    with pytest.raises(PipelineError, match=cause) as refused:
        parse(CHANGES, [*NEEDED, *arguments])
    assert refused.value.exit_code == 2


def test_a_registry_that_is_away_is_explained() -> None:
    """The error arrives through Spark, in the text of another one."""
    text = (
        "[STREAM_FAILED] Query terminated with exception: py4j.Py4JException: Traceback (most recent call last):\n"
        "kpybroker.pipelines.errors.PipelineError: kpybroker: The schema registry does not respond, or refuses"
        " (http://127.0.0.1:1: Connection refused).\nfix: Start it.\n\tat py4j.Protocol"
    )
    assert explain(text).cause.startswith("The schema registry does not respond, or refuses (http://127.0.0.1:1:")
    assert explain(text).fix == "Start it."


def test_missing_jars_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "connect").mkdir()
    (tmp_path / "connect" / "connect-runtime-3.9.1.jar").touch()
    assert main(["demo", "changes", "--connect-jars", str(tmp_path / "connect")]) == 1
    cause, fix = capsys.readouterr().err.splitlines()
    assert cause.startswith("kpybroker: Debezium's connector for PostgreSQL is not in ")
    assert fix.startswith("fix: Give --connect-jars DIR,DIR")
    (tmp_path / "debezium").mkdir()
    (tmp_path / "debezium" / "debezium-connector-postgres-3.5.0.Final.jar").touch()
    found = jars(f"{tmp_path}/connect,{tmp_path}/debezium")
    assert found == {RUNTIME: tmp_path / "connect", DEBEZIUM: tmp_path / "debezium"}


def test_a_missing_database_is_an_error_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match="fix: apt install postgresql"):
        postgresql.programs()
