"""A start that fails for any reason raises a StartupError with the documented exit code."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle import errors
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.config.broker import BrokerConfig
from kpybroker.coordination.embedded import EmbeddedStore, EmbeddedTree
from kpybroker.core import tree as t
from kpybroker.wire import znodes
from tests.coordination.faulty_tree import FaultyTree
from tests.support.brokers.running_broker import settings
from tests.support.network.memory_transport import MemoryTransport

Refuse = Callable[[Sequence[t.Operation]], t.TreeError | None]


class RefusingTree(EmbeddedTree):
    """Once `refuse` returns an error, every operation fails with it."""

    def __init__(self, refuse: Refuse) -> None:
        super().__init__(EmbeddedStore.in_memory(lambda: 1), 18_000)
        self._refuse = refuse
        self._refused: t.TreeError | None = None

    async def submit_many(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        self._refused = self._refused or self._refuse(ops)
        if self._refused is not None:
            return [self._refused] * len(ops)
        return await super().submit_many(ops)


async def start(directory: Path, tree: Any = None, **keys: str) -> Broker:
    """Start and stop; returns only if the start was a success."""
    config = BrokerConfig(settings(directory, **keys))
    async with Broker.open(config, transport=MemoryTransport(), tree=tree) as broker:
        return broker


async def refusal(directory: Path, tree: object = None, **keys: str) -> StartupError:
    with trio.fail_after(30), pytest.raises(StartupError) as raised:
        await start(directory, tree, **keys)
    for line in (raised.value.cause, raised.value.fix):
        assert line
        assert "\n" not in line
    return raised.value


async def steps_of_a_start(directory: Path) -> int:
    """How many requests to the tree a start makes, until the controller has read everything."""
    asked: list[Sequence[t.Operation]] = []
    await start(directory, RefusingTree(asked.append))
    last = next(i for i, ops in enumerate(asked) if t.path_of(ops[0]) == znodes.PREFERRED_REPLICA_ELECTION)
    return last + 1


@pytest.mark.parametrize("kind", [t.SystemFailure, t.NoAuth, t.SessionExpired])
async def test_a_tree_that_fails_at_any_step_is_reported_as_coordination(
    tmp_path: Path, kind: type[t.TreeError]
) -> None:
    steps = await steps_of_a_start(tmp_path / "whole")
    assert steps > 15
    for step in range(steps):
        counted = itertools.count()

        def refuse(_: object, step: int = step, counted: itertools.count[int] = counted) -> t.TreeError | None:
            return kind("/somewhere") if next(counted) >= step else None

        error = await refusal(tmp_path / str(step), RefusingTree(refuse))
        assert error.exit_code == errors.EXIT_COORDINATION
        assert f"{kind.__name__}: /somewhere" in error.cause


def at_call(number: int) -> Callable[[t.Operation], bool]:
    """True for the operation of that number, from 0."""
    counted = itertools.count()
    return lambda _: next(counted) == number


async def test_a_session_that_ends_at_any_step_is_reported_as_coordination(tmp_path: Path) -> None:
    steps = await steps_of_a_start(tmp_path / "whole")
    for step in range(steps):
        tree = FaultyTree(EmbeddedStore.in_memory(lambda: 1).session())
        expires = at_call(step)
        tree.expire_next(expires)
        error = await refusal(tmp_path / str(step), tree)
        assert (error.exit_code, "SessionExpired" in error.cause) == (errors.EXIT_COORDINATION, True)


async def test_a_znode_that_cannot_be_read_is_reported_as_coordination(tmp_path: Path) -> None:
    store = EmbeddedStore.in_memory(lambda: 1)
    await start(tmp_path, store.session())
    vandal = store.session()
    await vandal.start(1)
    await vandal.set(znodes.CLUSTER_ID, b"\xff")
    error = await refusal(tmp_path, store.session())
    assert error.exit_code == errors.EXIT_COORDINATION
    assert "ZnodeError" in error.cause
    assert "znode" in error.fix


async def test_an_invalid_address_of_zookeeper_is_reported_as_configuration(tmp_path: Path) -> None:
    error = await refusal(tmp_path, zookeeper_connect="/chroot")
    assert error.exit_code == errors.EXIT_CONFIG
    assert "zookeeper.connect=/chroot" in error.cause


async def test_unreadable_metadata_of_a_directory_is_reported_as_storage(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=7\n")
    error = await refusal(tmp_path)
    assert error.exit_code == errors.EXIT_STORAGE
    assert "meta.properties" in error.cause
