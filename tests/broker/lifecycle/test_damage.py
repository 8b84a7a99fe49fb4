"""Bits flipped and files cut, of every kind there is: never a wrong record, never silence about what is gone.

After any such damage a broker recovers, gives up the directory, or does not start, and says which file is the matter.
`make test` takes one of each kind, `--whole` ten. Some of Kafka's formats have no checksum: what a cleanly closed log's
batch says of its offset, a digit in a checkpoint, and a transaction index that ends after an entry are believed.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
import trio

from kpybroker.storage.disk import names
from tests.support.storage.damaged import (
    COMMITTED,
    KINDS,
    REFUSALS,
    Damage,
    Seen,
    damage,
    files_of,
    look,
    make,
)

SLICE, WHOLE = 1, 10


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories of a broker that was stopped, and of one that was killed."""
    root = tmp_path_factory.mktemp("sound")
    found = {"stopped": root / "stopped", "killed": root / "killed"}
    trio.run(make, found["stopped"], found["killed"])
    return found


def copy_of(directory: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(directory, target)
    return target


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_an_undamaged_directory_shows_everything(sound: dict[str, Path], tmp_path: Path, how: str) -> None:
    seen = await look(copy_of(sound[how], tmp_path / "copy"))
    assert (seen.refusal, seen.offline, seen.errors, seen.bad_crc, seen.committed) == (None, [], [], 0, COMMITTED)
    assert {index: len(content) for index, content in seen.content.items()} == {0: 53, 1: 65}
    assert {index: len(found) for index, found in seen.aborted.items()} == {1: 5}
    for kind in KINDS:
        assert files_of(sound[how], kind) or (kind, how) == (names.CLEAN_SHUTDOWN, "killed"), kind


@pytest.mark.parametrize("flip", [True, False], ids=["flip", "cut"])
@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize("kind", KINDS)
async def test_damage_is_noticed_or_harmless(
    sound: dict[str, Path], tmp_path: Path, kind: str, how: str, flip: bool, request: pytest.FixtureRequest
) -> None:
    if not files_of(sound[how], kind):
        return
    options = request.config.option
    without_start = copy_of(sound[how], tmp_path / "copy")
    (without_start / names.LOG_START_OFFSET_CHECKPOINT).unlink()
    written = await look(without_start)
    expected = await look(copy_of(sound[how], tmp_path / "copy"))
    for number in range(WHOLE if options.whole else SLICE):
        directory = copy_of(sound[how], tmp_path / "copy")
        done = damage(directory, kind, Random(f"{options.seed} {kind} {how} {flip} {number}"), flip=flip)
        check(written, expected, await look(directory), done)


def check(written: Seen, expected: Seen, seen: Seen, done: Damage) -> None:
    where = done.description
    assert not [record for record in seen.log if record.exc_info], where
    assert set(seen.errors) <= REFUSALS, (where, seen.errors)
    for index, content in seen.content.items():
        wrong = {offset: found for offset, found in content.items() if written.content[index].get(offset) != found}
        assert not wrong or done.is_of_an_offset, (where, wrong)
        if content == expected.content[index] and not done.is_believable:
            assert seen.aborted.get(index) == expected.aborted.get(index), where
    assert seen.committed in (COMMITTED, -1, None), where
    if done.is_of_an_offset or done.is_believable:
        return
    if seen.content != expected.content or seen.committed != COMMITTED or seen.refusal or seen.offline:
        assert seen.bad_crc or done.path.name in seen.report or done.path.parent.name in seen.report, (
            where,
            seen.report,
        )
