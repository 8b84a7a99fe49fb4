"""Brokers that are one cluster in several processes: here two `Hosted`, the second a client of the first's tree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from kpybroker.broker.lifecycle.errors import EXIT_COORDINATION, StartupError
from kpybroker.config.broker import BrokerConfig
from kpybroker.control.hosted import Hosted
from kpybroker.control.plan import BrokerPlan, Processes
from kpybroker.system.sockets import listening
from tests.support.brokers.hosted import plans, running, until

CREDENTIALS = "kpybroker:secret"


def plan(directory: Path, broker_id: int, **keys: str) -> BrokerPlan:
    """Without values that depend on how many brokers there are."""
    props = {**plans(directory, 2)[broker_id].props, "offsets.topic.replication.factor": "3"}
    return BrokerPlan.of(BrokerConfig(props | {name.replace("_", "."): value for name, value in keys.items()}))


@asynccontextmanager
async def first_of_two(directory: Path) -> AsyncIterator[tuple[Hosted, str]]:
    """The broker that keeps the tree, and where the other one connects."""
    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    processes = Processes(2, CREDENTIALS, directory / "tree.sqlite", listener)
    first = Hosted([plan(directory, 0, kpybroker_zookeeper_port=str(port))], directory, processes)
    async with running(first):
        yield first, f"127.0.0.1:{port}"


async def test_both_know_how_many_they_are_and_the_end_of_one_is_known_at_once(tmp_path: Path) -> None:
    async with first_of_two(tmp_path) as (first, address):
        assert (tmp_path / "tree.sqlite").exists()
        second = Hosted([plan(tmp_path, 1, zookeeper_connect=address)], tmp_path, Processes(2, CREDENTIALS))
        async with running(second):
            brokers = first.brokers[0], second.brokers[1]
            assert [one.config.get_int("offsets.topic.replication.factor") for one in brokers] == [2, 2]
            metadata = brokers[0].metadata
            assert await metadata.wait_until(lambda snapshot: len(snapshot.brokers) == 2, 10)
            epoch = brokers[1].broker_epoch
            first.forget_broker(7)
            first.forget_broker(1)
            assert await metadata.wait_until(lambda snapshot: len(snapshot.brokers) == 1, 10)
            # it was not dead, so it is back with a new session
            assert await metadata.wait_until(lambda snapshot: len(snapshot.brokers) == 2, 20)
            await until(lambda: brokers[1].broker_epoch > epoch)


@pytest.mark.parametrize("retires", [True, False])
async def test_those_that_retire_hand_nothing_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, retires: bool
) -> None:
    caplog.set_level("INFO")
    async with first_of_two(tmp_path) as (first, address):
        second = Hosted([plan(tmp_path, 1, zookeeper_connect=address)], tmp_path, Processes(2, CREDENTIALS))
        async with running(second):
            metadata = second.brokers[1].metadata
            assert await metadata.wait_until(lambda snapshot: len(snapshot.brokers) == 2, 10)
            if retires:
                await second.retire()
                await first.retire()
        await until(lambda: not second.brokers)
    handed_over = "Starting controlled shutdown" in caplog.text
    assert handed_over != retires


async def test_the_tree_is_not_for_others(tmp_path: Path) -> None:
    async with first_of_two(tmp_path) as (_, address):
        stranger = Hosted([plan(tmp_path, 1, zookeeper_connect=address)], tmp_path)
        with pytest.raises(BaseExceptionGroup) as caught:
            await stranger.run(trio.lowlevel.checkpoint)
        (error,) = leaves(caught.value)
        assert isinstance(error, StartupError)
        assert (error.exit_code, "NoAuth" in error.cause) == (EXIT_COORDINATION, True)


def leaves(error: BaseException) -> list[BaseException]:
    """What is in groups of groups."""
    return (
        [leaf for one in error.exceptions for leaf in leaves(one)] if isinstance(error, BaseExceptionGroup) else [error]
    )
