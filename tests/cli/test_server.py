"""`kpybroker server`: which source of a key overrides which."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG
from kpybroker.cli.processes import supervisor
from kpybroker.cli.server import run_server
from kpybroker.storage.disk.checkpoints import MetaProperties, encode_meta_properties
from tests.support.loggers import kept_logging


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[run.BrokerToRun]]:
    """Collects the plans instead of running them, and restores logging afterwards."""
    plans: list[run.BrokerToRun] = []

    def collect(wanted: list[run.BrokerToRun]) -> int:
        plans.extend(wanted)
        return 0

    monkeypatch.setattr(run, "run", collect)
    with kept_logging():
        yield plans


def test_overrides_override_the_environment_and_that_the_file(tmp_path: Path, planned: list[run.BrokerToRun]) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\nbroker.id=1\nlog.dirs=/a\n")
    environment = {"KAFKA_NUM_PARTITIONS": "2", "KAFKA_BROKER_ID": "2", "KAFKA_HEAP_OPTS": "-Xmx1g"}
    assert run_server(str(file), environment, ["num.partitions=3"], "text", "WARN") == 0
    (plan,) = planned
    assert plan.config.get_int("num.partitions") == 3
    assert plan.config.get_int("broker.id") == 2
    assert plan.config.log_dirs == ("/a",)
    assert [note.key for note in plan.notes] == ["KAFKA_HEAP_OPTS"]


IMAGE = {"KPYBROKER_DEFAULT_LISTENERS": "PLAINTEXT://:9092"}
ADVERTISED = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:29092"}


@pytest.mark.parametrize(
    ("environment", "overrides", "listeners"),
    [
        ({}, [], "PLAINTEXT://127.0.0.1:9092"),
        (IMAGE, [], "PLAINTEXT://:9092"),
        (IMAGE | ADVERTISED, [], "PLAINTEXT://:29092"),
        (IMAGE | ADVERTISED | {"KAFKA_LISTENERS": "PLAINTEXT://:1"}, [], "PLAINTEXT://:1"),
        (IMAGE | ADVERTISED, ["listeners=PLAINTEXT://:2"], "PLAINTEXT://:2"),
        (IMAGE, ["advertised.listeners=PLAINTEXT://kafka:29092"], "PLAINTEXT://:9092"),
    ],
)
def test_a_container_listens_where_its_variables_say(
    environment: dict[str, str], overrides: list[str], listeners: str, planned: list[run.BrokerToRun]
) -> None:
    assert run_server(None, environment, overrides, "text", "WARN") == 0
    assert [str(one) for one in planned[0].config.listeners] == [listeners]


def test_a_file_is_not_needed(planned: list[run.BrokerToRun]) -> None:
    assert run_server(None, {"KAFKA_BROKER_ID": "7"}, [], "json", "INFO") == 0
    assert planned[0].config.get_int("broker.id") == 7


def test_an_advertised_port_that_no_listener_has_is_a_warning() -> None:
    given = {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://localhost:9094"}
    (text,) = [note.text for note in run.plan(given, "here").notes if note.serious]
    assert "no listener has the port of PLAINTEXT://localhost:9094" in text


def test_an_error_names_its_source(
    tmp_path: Path, planned: list[run.BrokerToRun], capsys: pytest.CaptureFixture[str]
) -> None:
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


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch, planned: list[run.BrokerToRun]) -> list[supervisor.Family]:
    """Collects what would be supervised."""
    families: list[supervisor.Family] = []

    def collect(family: supervisor.Family) -> int:
        families.append(family)
        return 0

    monkeypatch.setattr(supervisor, "supervise", collect)
    return families


def test_several_processes_follow_from_one_file(tmp_path: Path, supervised: list[supervisor.Family]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_bytes(encode_meta_properties(MetaProperties("cluster", 3)))
    overrides = [f"log.dirs={data}", "ssl.key.password=secret"]
    assert run_server(None, {"KAFKA_NUM_PARTITIONS": "2"}, overrides, "json", "WARN", 2) == 0
    (family,) = supervised
    assert [one["broker.id"] for one in family.members] == ["3", "4"]
    assert [one["log.dirs"] for one in family.members] == [str(data), f"{data}-4"]
    assert {(one["num.partitions"], one["ssl.key.password"]) for one in family.members} == {("2", "secret")}
    assert (family.log_format, family.log_level, family.tree_file) == ("json", "WARNING", None)


def test_meta_properties_that_cannot_be_read_are_left_to_the_broker(
    tmp_path: Path, supervised: list[supervisor.Family]
) -> None:
    (tmp_path / "meta.properties").write_bytes(b"version=x\n")
    assert run_server(None, {}, [f"log.dirs={tmp_path}"], "text", "INFO", 2) == 0
    assert [one["broker.id"] for one in supervised[0].members] == ["0", "1"]


def test_a_file_that_cannot_be_that_of_several_is_two_lines(
    planned: list[run.BrokerToRun], capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = ["listeners=PLAINTEXT://:9092,SASL_PLAINTEXT://:9093"]
    with pytest.raises(SystemExit, check=lambda error: error.code == EXIT_CONFIG):
        run_server(None, {}, overrides, "text", "INFO", 2)
    cause, fix = capsys.readouterr().err.splitlines()
    assert cause.startswith("kpybroker: --processes 2: ports count up from broker to broker, so PLAINTEXT of broker 1")
    assert fix == "fix: leave 1 or more ports free after each port in the configuration"
    assert planned == []


def test_one_process_needs_no_supervisor(planned: list[run.BrokerToRun], supervised: list[supervisor.Family]) -> None:
    assert run_server(None, {}, [], "text", "INFO", 1) == 0
    assert (len(planned), supervised) == (1, [])
