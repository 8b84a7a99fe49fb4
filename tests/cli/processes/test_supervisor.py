"""What a supervisor and its processes say to each other, without processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.cli.processes.child import Task
from kpybroker.cli.processes.supervisor import Family, pinned, supervise
from kpybroker.system.sockets import listening


def task(**props: str) -> Task:
    return Task({name.replace("_", "."): value for name, value in props.items()}, "text", "INFO", True)


def test_a_task_survives_its_line() -> None:
    given = task(broker_id="1", sasl_jaas_config="a\nb é")._replace(brokers=2, tree_file="/data/tree", tree_socket=7)
    assert given.line().count(b"\n") == 1
    assert Task.of(given.line()) == given


def test_a_task_of_a_cluster_names_its_file(tmp_path: Path) -> None:
    found = task()._replace(brokers=2, tree_file=str(tmp_path)).processes()
    assert found is not None
    assert (found.brokers, found.tree_file, found.listener) == (2, tmp_path, None)
    assert task().processes() is None


def test_the_next_lives_of_a_broker_have_the_ports_of_the_first() -> None:
    said = {
        "brokers": [{"nodeId": 1, "listeners": {"PLAINTEXT": "127.0.0.1:41000", "OTHER": "[::1]:41001"}}],
        "metrics": ["http://127.0.0.1:41002/metrics"],
    }
    given = task(
        listeners="PLAINTEXT://127.0.0.1:0,OTHER://[::1]:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        kpybroker_metrics_port="0",
    )
    props = pinned(given, said).props
    assert props["listeners"] == "PLAINTEXT://127.0.0.1:41000,OTHER://[::1]:41001"
    assert props["kpybroker.metrics.port"] == "41002"


def test_a_port_of_the_tree_that_is_taken_is_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        family = Family([{"kpybroker.zookeeper.port": str(port)}], "text", "INFO", quiet=True)
        with pytest.raises(SystemExit, check=lambda error: error.code == 5):
            supervise(family)
    cause, fix = capsys.readouterr().err.splitlines()
    assert cause.startswith(f"kpybroker: the tree cannot be served at 127.0.0.1:{port}: ")
    assert fix.startswith("fix: change kpybroker.zookeeper.port")
