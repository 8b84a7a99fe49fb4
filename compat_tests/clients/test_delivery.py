"""The programs of docs/guides/transactions.md keep their promises, on the broker under test and by their command.

That the counting is right is shown on outputs made by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.deps import ROOT
from compat_tests.support.tools import run_process
from tests.support.programs.samples import module_of

CRASH = ROOT / "docs" / "samples" / "delivery" / "crash.py"
RECORDS, CRASHES = 3_000, 1


@pytest.fixture(scope="module")
def crash() -> ModuleType:
    """docs/samples/delivery is no package: a reader who runs it has nothing but the files."""
    return module_of(CRASH)


def keeps_its_promise(program: str, *, sent: int, arrived: int, lost: int, twice: int) -> None:
    """Lost or done again is what was on its way in a crash; a program that lost nothing was not hit where it hurts."""
    assert arrived == sent - lost + twice
    match program:
        case "at_most_once":
            assert twice == 0
            assert 0 < lost < sent
        case "at_least_once":
            assert lost == 0
            assert 0 < twice < sent
        case "exactly_once":
            assert (lost, twice) == (0, 0)
        case _:
            raise AssertionError(program)


@pytest.mark.parametrize(
    "program", [pytest.param("at_most_once", marks=pytest.mark.wide), "at_least_once", "exactly_once"]
)
def test_a_program_keeps_its_promise(own_broker: StartBroker, crash: ModuleType, tmp_path: Path, program: str) -> None:
    broker = own_broker(transaction_state_log_num_partitions=4, offsets_topic_num_partitions=4)
    numbers = crash.Play(program, broker, tmp_path).run(RECORDS, CRASHES)
    print(numbers)
    assert numbers.sent >= RECORDS
    keeps_its_promise(program, sent=numbers.sent, arrived=numbers.arrived, lost=numbers.lost, twice=numbers.twice)
    assert numbers.in_order


@pytest.mark.wide
def test_the_command_prints_its_numbers() -> None:
    out = run_process([sys.executable, str(CRASH), "at_least_once", "--records", "1000", "--crashes", "1"]).out
    title, numbers = out.splitlines()
    assert title == "at_least_once, 1 kills of the program, 1 of the broker"
    found = re.fullmatch(r"(\d+) sent, (\d+) arrived: (\d+) lost, (\d+) twice, in order", numbers)
    assert found is not None, numbers
    sent, arrived, lost, twice = map(int, found.groups())
    keeps_its_promise("at_least_once", sent=sent, arrived=arrived, lost=lost, twice=twice)


@pytest.mark.parametrize(
    ("arrived", "lost", "twice", "in_order"),
    [
        ([0, 1, 2, 3], 0, 0, True),
        ([0, 1, 3], 1, 0, True),
        ([], 4, 0, True),
        ([0, 1, 2, 1, 2, 3], 0, 2, True),
        ([0, 1, 1, 1], 2, 2, True),
        ([0, 2, 1, 3], 0, 0, False),
        ([3, 0, 3], 2, 1, False),
    ],
)
def test_losses_and_repetitions_are_counted(
    crash: ModuleType, arrived: list[int], lost: int, twice: int, in_order: bool
) -> None:
    expected = crash.Numbers(sent=4, arrived=len(arrived), lost=lost, twice=twice, in_order=in_order)
    assert crash.count(4, arrived) == expected


def test_a_record_that_no_one_sent_is_no_number(crash: ModuleType) -> None:
    with pytest.raises(AssertionError, match="never sent"):
        crash.count(4, [0, 1, 2, 3, 4])
