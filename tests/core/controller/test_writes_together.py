"""Fifty writes in a multi: what each of them has become, and what is written on its own after all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kpybroker.core import tree as t
from kpybroker.core.controller.effects import WRITES_TOGETHER, ControllerMoved, Submit, checked_together

EPOCH_VERSION = 7
STAT = t.Stat(1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1)
Respond = Callable[[t.Multi], t.Result | t.TreeError]


def written(count: int, respond: Respond) -> tuple[list[t.PartResult | t.TreeError], list[int]]:
    return results_of([t.SetData(f"/{number}", b"", 1) for number in range(count)], respond)


def results_of(
    ops: Sequence[t.Create | t.SetData], respond: Respond
) -> tuple[list[t.PartResult | t.TreeError], list[int]]:
    """The results of the writes, and how many each multi had."""
    procedure = checked_together(ops, EPOCH_VERSION)
    sizes: list[int] = []
    effect = next(procedure)
    while True:
        response = None
        if isinstance(effect, Submit):
            multis = [op for op in effect.ops if isinstance(op, t.Multi)]
            assert all(multi.ops[0] == t.Check("/controller_epoch", EPOCH_VERSION) for multi in multis)
            sizes += [len(multi.ops) - 1 for multi in multis]
            response = [respond(multi) for multi in multis]
        try:
            effect = procedure.send(response)
        except StopIteration as stop:
            return stop.value, sizes


def refusing(path: str) -> Respond:
    """A tree in which this node has another version."""

    def respond(multi: t.Multi) -> t.Result | t.TreeError:
        paths = [part.path for part in multi.ops]
        if path in paths:
            return t.MultiFailed(tuple(t.BadVersion(one) if one == path else t.RolledBack(one) for one in paths))
        return (None, *[STAT] * (len(paths) - 1))

    return respond


def test_all_succeed_in_as_few_multis_as_they_fit_into() -> None:
    results, sizes = written(2 * WRITES_TOGETHER + 1, refusing("/nothing"))
    assert results == [STAT] * (2 * WRITES_TOGETHER + 1)
    assert sizes == [WRITES_TOGETHER, WRITES_TOGETHER, 1]


def test_one_that_fails_leaves_the_others_of_its_multi_to_be_written_alone() -> None:
    results, sizes = written(2 * WRITES_TOGETHER, refusing("/3"))
    assert [number for number, result in enumerate(results) if isinstance(result, t.BadVersion)] == [3]
    assert results.count(STAT) == 2 * WRITES_TOGETHER - 1
    assert sizes == [WRITES_TOGETHER, WRITES_TOGETHER, *[1] * WRITES_TOGETHER]


def test_one_that_was_alone_is_not_written_again() -> None:
    results, sizes = written(1, refusing("/0"))
    assert isinstance(results[0], t.BadVersion)
    assert sizes == [1]


@pytest.mark.parametrize("count", [1, WRITES_TOGETHER // 2, WRITES_TOGETHER, 2 * WRITES_TOGETHER, 120])
def test_what_needs_a_node_that_was_rolled_back_is_written_after_it(count: int) -> None:
    """As more partitions of a topic that exists: the first node is there, and all of its multi fail with it."""
    nodes = {"/p"}

    def respond(multi: t.Multi) -> t.Result | t.TreeError:
        paths = [part.path for part in multi.ops[1:]]
        made = set(nodes)
        for path in paths:
            error: t.TreeError | None = None
            if path in made:
                error = t.NodeExists(path)
            elif path != "/p" and t.parent_path(path) not in made:
                error = t.NoNode(path)
            if error is not None:
                errors = [error if one == path else t.RolledBack(one) for one in paths]
                return t.MultiFailed((t.RolledBack("/controller_epoch"), *errors))
            made.add(path)
        nodes.update(made)
        return (None, *[STAT] * len(paths))

    paths = ["/p", *(f"/p/{n}" for n in range(count)), *(f"/p/{n}/state" for n in range(count))]
    results, _ = results_of([t.Create(path, b"") for path in paths], respond)
    assert isinstance(results[0], t.NodeExists)
    assert results[1:] == [STAT] * (2 * count)
    assert nodes == set(paths)


def test_a_failed_check_is_the_end_of_the_controller() -> None:
    with pytest.raises(ControllerMoved):
        written(2 * WRITES_TOGETHER, refusing("/controller_epoch"))
