"""Every target takes its seeds, and takes or refuses what once broke a rule, and what chance makes of both."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.played import FOUND, played
from tests.fuzz.target import Target, texts
from tests.fuzz.targets import every
from tests.wire.fuzz.fuzz_decode import Mutator

TARGETS = every()
CHANGED = 60


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds(name: str) -> None:
    taken = [TARGETS[name].once(seed) for seed in TARGETS[name].seeds()]
    assert any(taken), "no seed is good"


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_found_is_taken_or_refused(name: str) -> None:
    target, random = TARGETS[name], Random(name)
    mutator = Mutator(random)
    inputs = [*target.seeds(), *played(name)]
    for data in inputs:
        target.once(data)
    for _ in range(CHANGED):
        target.once(mutator.mutate(random.choice(inputs), random.choice(inputs)))


def test_files_of_what_was_found_are_of_targets() -> None:
    assert {file.stem for file in FOUND.glob("*.txt")} <= TARGETS.keys()


def test_an_error_that_no_caller_knows_is_a_finding() -> None:
    def run(data: bytes) -> None:
        if data == b"refused":
            raise ValueError
        if data == b"finding":
            raise KeyError

    target = Target("t", run, (ValueError,), texts("x"), ())
    assert target.once(b"taken")
    assert not target.once(b"refused")
    with pytest.raises(KeyError):
        target.once(b"finding")
