"""A power cut or a kill at each disk operation of scripted loads; the restart must keep all that was acknowledged.

`make test` runs a sample of the positions; `--whole` runs all of them, several times, and also stops recoveries. The
disk is taken to keep the order of name changes, as ext4, XFS and btrfs do.
"""

from __future__ import annotations

from random import Random

import pytest

from kpybroker.storage.directories import closing
from tests.support.storage.lossy_files import LossyFiles, PowerCut
from tests.support.storage.storage_check import check_restart
from tests.support.storage.storage_load import SCENARIOS, Load, Scenario, open_manager

pytestmark = pytest.mark.usefixtures("index_writes")

SLICE = 40
CRASHES_EACH = 5
CRASHES_OF_RECOVERY = 10


def stop_at(operation: int, files: LossyFiles) -> None:
    def stop(number: int, kind: str, path: str) -> None:
        if number == operation:
            raise PowerCut

    files.before_operation = stop


def cut(scenario: Scenario, operation: int, *, syncs_all: bool = False) -> Load:
    load = Load()
    load.files.syncs_all = syncs_all
    stop_at(operation, load.files)
    with pytest.raises(PowerCut):
        scenario(load)
    return load


def places(scenario: Scenario, request: pytest.FixtureRequest, *, syncs_all: bool = False) -> tuple[list[int], Random]:
    """Which operations to stop at, and the seed of the rest."""
    load = Load()
    load.files.syncs_all = syncs_all
    scenario(load)
    everywhere = range(1, load.files.operations + 1)
    assert len(everywhere) > 100
    chance = Random(f"{request.config.option.seed} {scenario.__name__}")
    whole = request.config.option.whole
    return (list(everywhere) if whole else sorted(chance.sample(everywhere, SLICE))), chance


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_power_cut_anywhere_loses_nothing_that_was_promised(name: str, request: pytest.FixtureRequest) -> None:
    chosen, chance = places(SCENARIOS[name], request)
    for operation in chosen:
        load = cut(SCENARIOS[name], operation)
        for _ in range(CRASHES_EACH if request.config.option.whole else 1):
            check_restart(load, load.files.crash(chance, in_order=True))


@pytest.mark.parametrize("name", ["appends", "restarts", "truncation", "topics"])
def test_nor_do_stops_that_sync_everything_at_once(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing, "SYNCED_EACH_MAX", 0)
    chosen, chance = places(SCENARIOS[name], request, syncs_all=True)
    for operation in chosen:
        load = cut(SCENARIOS[name], operation, syncs_all=True)
        for _ in range(CRASHES_EACH if request.config.option.whole else 1):
            check_restart(load, load.files.crash(chance, in_order=True))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_kill_anywhere_loses_nothing_that_was_written(name: str, request: pytest.FixtureRequest) -> None:
    chosen, _ = places(SCENARIOS[name], request)
    for operation in chosen:
        load = cut(SCENARIOS[name], operation)
        check_restart(load, load.files.snapshot())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_power_cut_during_the_recovery_changes_nothing(name: str, request: pytest.FixtureRequest) -> None:
    chosen, chance = places(SCENARIOS[name], request)
    for operation in chance.sample(chosen, CRASHES_OF_RECOVERY):
        load = cut(SCENARIOS[name], operation)
        crashed = load.files.crash(chance, in_order=True)
        probe = crashed.snapshot()
        open_manager(probe)
        steps = range(1, probe.operations + 1)
        for step in steps if request.config.option.whole else chance.sample(steps, min(3, len(steps))):
            files = crashed.snapshot()
            stop_at(step, files)
            with pytest.raises(PowerCut):
                open_manager(files)
            check_restart(load, files.crash(chance, in_order=True))
