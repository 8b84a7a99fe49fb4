"""`verify-replicas`: what counts as equal, and what is said of replicas that are not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.doctor.replicas import Chunk, Part, differs
from tests.client.conftest import Run


def chunks(*logs: Sequence[Part]) -> dict[int, Chunk]:
    """Of replicas 1, 2, ..."""
    return {number: Chunk(list(parts), parts[-1].last + 1 if parts else 0) for number, parts in enumerate(logs, 1)}


A, B, C = Part(0, 4, "a"), Part(5, 5, "b"), Part(6, 9, "c")


@pytest.mark.parametrize("is_compacted", [False, True])
def test_equal_logs(is_compacted: bool) -> None:
    differs(chunks([A, B, C], [A, B, C], [A, B, C]), 10, is_compacted=is_compacted)


def test_what_a_replica_has_not_returned_yet_is_not_compared() -> None:
    differs(chunks([A, B, C], [A, B]), 6, is_compacted=False)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_other_contents_at_the_same_offset(is_compacted: bool) -> None:
    with pytest.raises(CommandError, match="replicas 1 and 3 differ at offset 5"):
        differs(chunks([A, B], [A, B], [A, B._replace(contents="x")]), 6, is_compacted=is_compacted)


def test_a_missing_batch_is_a_difference_unless_the_topic_is_compacted() -> None:
    logs = chunks([A, C], [A, B, C])
    with pytest.raises(CommandError, match="replica 1 has no batch that begins at offset 5"):
        differs(logs, 10, is_compacted=False)
    differs(logs, 10, is_compacted=True)


def test_another_length_of_a_batch_is_a_difference() -> None:
    with pytest.raises(CommandError, match="replicas 1 and 2 differ at offset 0"):
        differs(chunks([A, B], [A._replace(last=3), B]), 6, is_compacted=False)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_one_replica_is_equal_to_itself(run: Run, name: str, policy: str) -> None:
    run("topic", "create", name, "-p", "2", "--config", f"cleanup.policy={policy}")
    run("topic", "produce", name, "-K:", "-p", "0", stdin=b"a:1\nb:2\n")
    found = run("verify-replicas", f"{name}*", "--format", "json")
    assert found.code == 0
    assert [(row["partition"], row["from"], row["to"], row["status"]) for row in found.json] == [
        (0, 0, 2, "equal"),
        (1, 0, 0, "equal"),
    ]


def test_a_topic_that_is_not_there(run: Run, name: str) -> None:
    found = run("verify-replicas", name)
    assert (found.code, found.err.splitlines()[0]) == (1, f"kpybroker: no topic matches {name}")
