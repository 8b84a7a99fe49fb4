"""`--kafka-bootstrap`: the same suite on a cluster that was there before. Real Kafka's turn is in compat_tests."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from kpybroker.testing import Broker
from tests.support.programs.planted import FAILING, OURS, PASSING, PLANTED, outcomes
from tests.support.programs.pytest_runs import run_pytest

WORKERS = [pytest.param((), id="alone", marks=pytest.mark.wide), pytest.param(("-n", "2"), id="xdist")]


@pytest.mark.parametrize("workers", WORKERS)
def test_tests_fail_alone_and_what_needs_our_broker_is_skipped_by_name(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as broker:
        run = run_pytest(tmp_path, PLANTED, "-rA", f"--kafka-bootstrap={broker.bootstrap_servers}", *workers)
        left = broker.topics()
    assert outcomes(run.output) == {**FAILING, **PASSING, **dict.fromkeys(OURS, "SKIPPED")}, run.output
    for name in OURS:
        assert re.search(rf"^test_it\.py::{name}: .+", run.output, re.M), run.output
    assert f"{len(OURS)} tests need a broker of kpybroker: run them without --kafka-bootstrap, too" in run.output
    assert "INTERNALERROR" not in run.output
    assert run.code == pytest.ExitCode.TESTS_FAILED
    assert all(not name.startswith("test-") for name in left), "topics of tests end with them"


def test_on_our_broker_the_same_tests_fail(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, PLANTED, "-rA")
    assert outcomes(run.output) == {**FAILING, **PASSING, **dict.fromkeys(OURS, "PASSED")}, run.output


@pytest.mark.parametrize("workers", WORKERS)
def test_a_cluster_that_does_not_respond_ends_the_run_once_in_two_lines(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        run = run_pytest(tmp_path, PLANTED, f"--kafka-bootstrap={address}", *workers)
    assert run.code == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in run.output.splitlines() if line.strip()]
    assert lines == [
        f"ERROR: --kafka-bootstrap={address}: {address} refuses connections",
        "ERROR: fix: start the cluster, or name another one",
    ]


def test_so_does_one_whose_brokers_are_elsewhere(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        elsewhere = f"127.0.0.1:{unused.getsockname()[1]}"
        with Broker(config={"advertised.listeners": f"PLAINTEXT://{elsewhere}"}) as broker:
            address = f"{broker.host}:{broker.port}"
            run = run_pytest(tmp_path, PLANTED, f"--kafka-bootstrap={address}")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in run.output.splitlines() if line.strip()]
    why = f"the cluster names its brokers {elsewhere}: {elsewhere} refuses connections"
    assert lines == [
        f"ERROR: --kafka-bootstrap={address}: {why}",
        "ERROR: fix: set advertised.listeners to addresses that this machine reaches",
    ]


def test_the_first_address_that_responds_is_enough(tmp_path: Path) -> None:
    with socket.socket() as unused, Broker() as broker:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]},{broker.bootstrap_servers}"
        run = run_pytest(tmp_path, PLANTED, f"--kafka-bootstrap={address}", "-k", "test_records", "-rA")
    assert run.counts == {"passed": 1, "deselected": len({**FAILING, **PASSING}) + len(OURS) - 1}, run.output


def test_what_is_no_address_ends_the_run_and_a_look_at_the_tests_asks_no_cluster(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, PLANTED, "--kafka-bootstrap=localhost")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "'localhost' is not HOST:PORT, such as localhost:9092" in run.output, run.output
    run = run_pytest(tmp_path, PLANTED, "--kafka-bootstrap=localhost:1", "--collect-only", "-q")
    assert run.code == pytest.ExitCode.OK, run.output
