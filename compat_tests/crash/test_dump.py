"""The parser of DumpLogSegments' output finds what it should; real output is `test_kill.py`'s."""

from __future__ import annotations

import pytest

from compat_tests.crash.dump import find_damage


def batch(first: int, last: int, valid: str = "true") -> str:
    return (
        f"baseOffset: {first} lastOffset: {last} count: {last - first + 1} baseSequence: -1 lastSequence: -1 "
        f"producerId: -1 partitionLeaderEpoch: 0 isTransactional: false position: 0 size: 99 isvalid: {valid}\n"
    )


def dumped(*batches: str, file: str = "/d/t-0/00000000000000000000.log") -> str:
    return f"Dumping {file}\nLog starting offset: 0\n{''.join(batches)}"


SOUND = dumped(batch(0, 4), batch(5, 5)) + dumped(batch(6, 9), file="/d/t-0/00000000000000000006.log")


def test_sound_segments() -> None:
    assert find_damage(SOUND) == []


@pytest.mark.parametrize(
    "output",
    [
        dumped(batch(0, 4), batch(5, 5, "false")),
        dumped(batch(0, 4), batch(6, 6)),
        dumped(batch(0, 4), batch(4, 6)),
        dumped(batch(1, 4)),
        dumped(batch(0, 4)) + dumped(batch(6, 9), file="/d/t-0/00000000000000000006.log"),
        SOUND + "Non-consecutive offsets in /d/t-0/00000000000000000000.log:\n  5 is followed by 7\n",
        SOUND + "Mismatches in :/d/t-0/00000000000000000000.index\n",
        SOUND + "\nSTDERR Exception in thread main\n",
    ],
)
def test_damage_is_found(output: str) -> None:
    assert find_damage(output)
