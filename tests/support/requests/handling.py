"""A handler's response to a request, as dispatch gets it: through the codec both ways, errors as responses."""

from __future__ import annotations

from types import GeneratorType
from typing import Any

from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.requests.context import RequestContext
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import KafkaError


async def response_of(handler: Any, broker: Any, request: Any, context: RequestContext) -> Any:
    """`handler` is the module of an API; `broker` is what it needs of one."""
    version = context.api_version
    received = decode(type(request), encode(request, version), version)
    try:
        handling = handler.handle(broker, received, context)
        response = await (run_to_end(handling) if isinstance(handling, GeneratorType) else handling)
    except KafkaError as error:
        response = handler.error_response(received, context, error)
    return decode(type(response), encode(response, version), version)
