"""A whole broker in memory and a directory, for the configuration APIs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.core.authorizer import Authorizer
from tests.support.brokers.running_broker import running_broker
from tests.support.requests.handling import response_of


@asynccontextmanager
async def configured_broker(directory: Path, *topics: str, **keys: Any) -> AsyncIterator[Broker]:
    """`running_broker` with all that it keeps below `directory`."""
    async with running_broker(directory / "logs", topics=topics, keeps=True, **keys) as broker:
        yield broker


async def call(
    broker: Broker, handler: Any, request: Any, version: int, *, authorizer: Authorizer | None = None
) -> Any:
    """What dispatch gets from the API's module."""
    context = RequestContext(PlainConnectionInfo(), authorizer or broker.authorizer, handler.LEDGER.api_key, version)
    return await response_of(handler, broker, request, context)
