"""A whole broker in memory and a directory, for the configuration APIs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.authorizer import Authorizer
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import KafkaError


@asynccontextmanager
async def configured_broker(directory: Path, *topics: str, **props: str) -> AsyncIterator[Broker]:
    """A started broker; `props` are keys with `_` for `.`."""
    keys = {name.replace("_", "."): value for name, value in props.items()}
    fixed = {"broker.id": "0", "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory / "logs")}
    async with Broker.open(BrokerConfig(fixed | keys)) as broker:
        if topics:
            await broker.topics.create_topics([NewTopic(name, 1, 1) for name in topics], 10_000)
        yield broker


async def call(
    broker: Broker, handler: Any, request: Any, version: int, *, authorizer: Authorizer | None = None
) -> Any:
    """Through the codec both ways, with errors turned into responses as dispatch does."""
    request = decode(type(request), encode(request, version), version)
    context = RequestContext(PlainConnectionInfo(), authorizer or broker.authorizer, handler.LEDGER.api_key, version)
    try:
        response = await handler.handle(broker, request, context)
    except KafkaError as error:
        response = handler.error_response(request, context, error)
    return decode(type(response), encode(response, version), version)
