"""Hosted brokers in this process, and their methods as the channel calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from kpybroker.control.catalogue import all_methods
from kpybroker.control.errors import ControlError
from kpybroker.control.hosted import Hosted
from kpybroker.control.plan import BrokerPlan
from tests.support.running_broker import settings

Call = Callable[..., Awaitable[Any]]
"""`call("create_topic", name="t")`: the JSON of the result. Raises ControlError."""


@asynccontextmanager
async def hosted_brokers(directory: Path, count: int = 1, **keys: str) -> AsyncIterator[tuple[Hosted, Call]]:
    """`count` brokers on free ports; `keys` are Kafka's with `.` written as `_`."""
    data = directory / "data"
    data.mkdir()
    plans = []
    for broker_id in range(count):
        props = settings(data if count == 1 else data / f"broker-{broker_id}", **keys)
        own = {"broker.id": str(broker_id), "listeners": "PLAINTEXT://127.0.0.1:0"}
        plans.append(BrokerPlan(broker_id, props | own))
    hosted = Hosted(plans, data)
    hosted.is_controlled = True
    registry = all_methods()

    async def call(method: str, /, **arguments: Any) -> Any:
        return await registry[method].call(hosted, arguments)

    async with trio.open_nursery() as nursery:
        ready = trio.Event()

        async def on_ready() -> None:
            ready.set()

        nursery.start_soon(hosted.run, on_ready)
        await ready.wait()
        try:
            yield hosted, call
        finally:
            hosted.stop()


async def refusal(call: Awaitable[Any]) -> str:
    """What a call was refused for, as one text of cause and fix."""
    try:
        result = await call
    except ControlError as error:
        return f"{error.cause}; {error.fix}"
    raise AssertionError(f"it was not refused: {result!r}")
