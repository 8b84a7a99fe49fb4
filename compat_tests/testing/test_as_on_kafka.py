"""A suite with planted failures on our broker, on Kafka 3.9.1 and on 4.3.1: the three reports are the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from compat_tests.support.kafkas import kafka_3, kafka_4
from tests.support.programs.planted import FAILING, OURS, PASSING, PLANTED, outcomes
from tests.support.programs.pytest_runs import run_pytest

Start = Callable[[Path], AbstractContextManager[str]]


@pytest.mark.wide
@pytest.mark.parametrize(
    "start", [pytest.param(kafka_3, id="3.9.1", marks=pytest.mark.wide), pytest.param(kafka_4, id="4.3.1")]
)
def test_the_reports_are_those_of_our_broker_but_for_what_only_that_can_do(tmp_path: Path, start: Start) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours = outcomes(run_pytest(tmp_path / "ours", PLANTED, "-rA").output)
    with start(tmp_path / "kafka") as bootstrap:
        run = run_pytest(tmp_path / "theirs", PLANTED, "-rA", f"--kafka-bootstrap={bootstrap}")
    theirs = outcomes(run.output)
    assert ours == {**FAILING, **PASSING, **dict.fromkeys(OURS, "PASSED")}
    assert theirs == {**ours, **dict.fromkeys(OURS, "SKIPPED")}, run.output
    assert f"{len(OURS)} tests need a broker of kpybroker" in run.output
