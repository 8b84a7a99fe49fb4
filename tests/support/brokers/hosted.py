"""Hosted brokers with a control channel in this process, and a caller of its methods."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from kpybroker.config.broker import BrokerConfig
from kpybroker.control.catalogue import all_methods
from kpybroker.control.errors import ControlError
from kpybroker.control.hosted import Hosted
from kpybroker.control.plan import BrokerPlan
from kpybroker.control.start import open_channel

Address = tuple[str, int]
Call = Callable[..., Awaitable[Any]]
"""`call("create_topic", name="t")`: the JSON of the result. Raises ControlError."""


def plans(directory: Path, count: int = 1, **keys: str) -> list[BrokerPlan]:
    """Brokers on free ports of loopback; keys are Kafka's with `.` written as `_`."""
    common = {
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **{name.replace("_", "."): value for name, value in keys.items()},
    }
    return [
        BrokerPlan.of(
            BrokerConfig(
                {
                    **common,
                    "broker.id": str(broker_id),
                    "listeners": "PLAINTEXT://127.0.0.1:0",
                    "log.dirs": str(directory / f"broker-{broker_id}"),
                }
            )
        )
        for broker_id in range(count)
    ]


@asynccontextmanager
async def running(hosted: Hosted) -> AsyncIterator[Hosted]:
    """For the length of the block; ends with it if they end by themselves."""
    ready = trio.Event()

    async def run() -> None:
        await hosted.run(set_ready)

    async def set_ready() -> None:
        ready.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await ready.wait()
        yield hosted
        hosted.stop()


@asynccontextmanager
async def controlled(directory: Path, count: int = 1, **keys: str) -> AsyncIterator[tuple[Hosted, Address]]:
    """Brokers with a channel, and its address."""
    hosted = Hosted(plans(directory, count, **keys), directory)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(open_channel, hosted, 0)
        async with running(hosted):
            yield hosted, address
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def hosted_brokers(directory: Path, count: int = 1, **keys: str) -> AsyncIterator[tuple[Hosted, Call]]:
    """Brokers without a channel, and a caller of its methods."""
    data = directory / "data"
    data.mkdir()
    hosted = Hosted(plans(data, count, **keys), data)
    hosted.is_controlled = True
    async with running(hosted):
        yield hosted, partial(call, hosted)


async def call(hosted: Hosted, method: str, /, **arguments: Any) -> Any:
    """A method, called without HTTP. The result has been through JSON. Raises ControlError."""
    return json.loads(json.dumps(await all_methods()[method].call(hosted, arguments)))


async def refusal(call: Awaitable[Any]) -> str:
    """What a call was refused for, as one text of cause and fix."""
    try:
        result = await call
    except ControlError as error:
        return f"{error.cause}; {error.fix}"
    raise AssertionError(f"it was not refused: {result!r}")


async def until(condition: Callable[[], bool], seconds_max: float = 60) -> None:
    """Return once it holds."""
    with trio.fail_after(seconds_max):
        while not condition():  # noqa: ASYNC110 -- it has no event
            await trio.sleep(0.01)
