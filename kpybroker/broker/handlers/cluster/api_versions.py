"""ApiVersions 0-4: which APIs and versions are served here, which features are supported, and which are finalized.

The response to a version newer than 4 is in version 0, with UNSUPPORTED_VERSION and the range of this API alone, so
that a newer client can ask again (KIP-511). The response header has tagged fields in no version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.requests.served.apis import SERVED, listed_for
from kpybroker.core.features import Ranges
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.API_VERSIONS,
    0,
    4,
    {
        0: "keys and versions",
        1: "throttle time",
        3: "flexible; the client's software name and version; supported and finalized features, with the epoch",
        4: "supported features with a range from 0",
    },
)

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
SERVED_FROM = 3
LEVEL_0_FROM = 4

Supported = ApiVersionsResponse.SupportedFeatureKey
Finalized = ApiVersionsResponse.FinalizedFeatureKey


async def handle(broker: Broker, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """The table of served APIs, and the finalized features."""
    cap = broker.dispatcher.cap_of(context.connection)
    served = SERVED if cap is None else cap.listed
    oldest, newest = served[ApiKey.API_VERSIONS]
    if not oldest <= context.api_version <= newest:
        own = {ApiKey.API_VERSIONS: (oldest, newest)} if cap is None or cap.lists_own_range else {}
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_listed(own))
    software = ""
    if context.api_version >= SERVED_FROM:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE_NAME.fullmatch(name) and _SOFTWARE_NAME.fullmatch(version)):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        context.connection.client_software_name = name
        context.connection.client_software_version = version
        software = f"{name} {version}"
    supported, finalized = broker.features.supported, broker.metadata.snapshot.features
    levels = finalized.levels
    if cap is not None:
        supported, levels = cap.supported(supported), cap.finalized(levels)
    return ApiVersionsResponse(
        api_keys=_listed(listed_for(served, software, supported, client_metrics=broker.client_metrics.is_listed)),
        supported_features=_supported(supported, context.api_version),
        finalized_features_epoch=finalized.epoch,
        finalized_features=[
            Finalized(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(levels.items())
        ],
    )


def _supported(ranges: Ranges, version: int) -> list[Supported]:
    """Before version 4 without features that have a level 0: some clients fail at these (KAFKA-17492)."""
    return [
        Supported(name=name, min_version=levels.min, max_version=levels.max)
        for name, levels in sorted(ranges.items())
        if levels.min > 0 or version >= LEVEL_0_FROM
    ]


def _listed(served: Mapping[ApiKey, tuple[int, int]]) -> list[ApiVersionsResponse.ApiVersion]:
    return [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=oldest, max_version=newest)
        for key, (oldest, newest) in sorted(served.items())
    ]


def error_response(request: ApiVersionsRequest, context: RequestContext, error: KafkaError) -> ApiVersionsResponse:
    """The error without any API."""
    return ApiVersionsResponse(error_code=error.code)
