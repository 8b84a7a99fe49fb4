"""`cluster info|health|log-dirs|api-versions` against a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.requests.served.apis import SERVED, listed_for
from kpybroker.client.actions.clusters import problem_row
from kpybroker.client.actions.partitions import Partition
from tests.client.conftest import Run
from tests.support.programs.command_line import invoke
from tests.support.programs.samples import dev_broker


def test_info_names_brokers_controller_and_version(run: Run, bootstrap: str) -> None:
    found = run("cluster", "info", "--format", "json").json
    host, port = bootstrap.split(":")
    assert found["controller"] == 0
    assert found["brokers"] == [
        {"broker": 0, "host": host, "port": int(port), "rack": None, "controller": True, "looks_like": "4.3"}
    ]
    assert "Kafka 4.3" in run("cluster", "info").text


def test_log_dirs_count_replicas_and_bytes(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "2")
    run("topic", "produce", name, "-p", "1", stdin=b"x" * 5000 + b"\n")
    replicas = {
        row["partition"]: row["size"]
        for row in run("cluster", "log-dirs", "--replicas", "--format", "json").json
        if row["topic"] == name
    }
    assert replicas[0] == 0
    assert replicas[1] > 5000
    (row,) = run("cluster", "log-dirs", "--broker", "0", "--format", "json").json
    assert (row["error"], row["replicas"] >= 2, row["total"] > row["usable"] > 0) == (None, True, True)
    assert run("cluster", "log-dirs", "--broker", "9").code == 1


def test_api_versions_are_those_served(run: Run) -> None:
    rows = run("cluster", "api-versions", "--format", "json").json
    assert {row["key"]: (row["oldest"], row["newest"]) for row in rows} == {
        int(k): v for k, v in listed_for(SERVED, "").items()
    }
    assert "Kafka 4.3" in run("cluster", "api-versions").err


def test_health_is_quiet_when_all_is_well(run: Run) -> None:
    result = run("cluster", "health")
    assert (result.code, result.out) == (0, b"")
    assert "are healthy" in result.err


def test_health_of_a_cluster_that_has_too_few_in_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dev_broker(tmp_path / "data") as broker:
        invoke(monkeypatch, "topic", "create", "t", "-c", "min.insync.replicas=2", "-b", broker.bootstrap)
        result = invoke(monkeypatch, "cluster", "health", "-b", broker.bootstrap)
    assert result.code == 1
    assert result.table == [
        {"TOPIC": "t", "PARTITION": "0", "PROBLEM": "under-min-isr", "LEADER": "0", "REPLICAS": "0", "ISR": "0",
         "MIN-ISR": "2"}
    ]  # fmt: skip


def test_the_worst_problem_of_a_partition_is_named() -> None:
    def problem(leader: int | None, isr: list[int], min_isr: int = 1) -> str | None:
        row = problem_row(Partition("t", 0, leader, [1, 2, 3], isr), min_isr)
        return None if row is None else row["problem"]

    assert problem(None, []) == "leaderless"
    assert problem(1, [1], 2) == "under-min-isr"
    assert problem(1, [1, 2], 2) == "under-replicated"
    assert problem(1, [1, 2, 3], 2) is None
