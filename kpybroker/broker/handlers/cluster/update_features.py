"""UpdateFeatures 0-2: finalize levels of features for the whole cluster (KIP-584, KIP-1022), at the controller.

Versions 0 and 1 are those of Kafka 3.9 in ZooKeeper mode, with a result for each feature; version 2 is that of Kafka
4.3, all or nothing, as are all versions of a broker in the place of a release from 4.0 on. The rules of both are in
`core.controller.features.updates`. The response waits until this broker has taken over what was written, as in Kafka,
so that a client sees it in the next ApiVersions of the controller.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.config.keys.own import KAFKA_VERSION
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import UpdateFeatures
from kpybroker.core.features import Update, UpgradeType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Result = UpdateFeaturesResponse.UpdatableFeatureResult

SUCCESS = "NONE"
"""What Kafka writes as the error message of a feature that was updated: the name of the code."""

ALL_OR_NOTHING_FROM = 2

LEDGER = Ledger(
    ApiKey.UPDATE_FEATURES,
    0,
    2,
    {
        0: "a result for each feature, with the rules and texts of Kafka 3.9 in ZooKeeper mode",
        1: "validation only; safe and unsafe downgrades",
        2: "all or nothing, with the rules and texts of Kafka 4.3; one error, no results",
    },
    absent="metadata.version, kraft.version and eligible.leader.replicas.version, which are about KRaft",
)


async def handle(broker: Broker, request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    """Update through the controller; raises NOT_CONTROLLER where this broker is not the controller."""
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    release = broker.config.get(KAFKA_VERSION)
    is_of_4 = context.api_version >= ALL_OR_NOTHING_FROM or (release is not None and str(release) >= "4")
    updates = tuple(_update(update, context.api_version, is_of_4) for update in request.feature_updates)
    updated = await broker.controller.ask(UpdateFeatures(updates, is_of_4, request.validate_only))
    results = updated.results
    if updated.epoch is not None and not await broker.metadata.wait_until(
        lambda snapshot: snapshot.features.epoch >= updated.epoch, max(request.timeout_ms, 0) / 1000
    ):
        if is_of_4:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        failed = KafkaError(ErrorCode.FEATURE_UPDATE_FAILED)
        results = {feature: refused or failed for feature, refused in results.items()}
    if not is_of_4:
        return UpdateFeaturesResponse(error_message=None, results=list(starmap(_result, results.items())))
    failure = next((error for error in results.values() if error is not None), None)
    if failure is not None:
        raise failure
    return UpdateFeaturesResponse(
        error_message=None, results=[_result(update.feature, None) for update in request.feature_updates]
    )


def _update(update: UpdateFeaturesRequest.FeatureUpdateKey, version: int, is_of_4: bool) -> Update:
    """Kafka 4 ignores what version 0 allows, and takes each for an upgrade."""
    if version == 0 and not is_of_4:
        kind = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    else:
        kind = UpgradeType.of(update.upgrade_type)
    return Update(update.feature, update.max_version_level, kind)


def _result(feature: str, error: KafkaError | None) -> Result:
    if error is None:
        return Result(feature=feature, error_code=ErrorCode.NONE, error_message=SUCCESS)
    return Result(feature=feature, error_code=error.code, error_message=error.message)


def error_response(
    request: UpdateFeaturesRequest, context: RequestContext, error: KafkaError
) -> UpdateFeaturesResponse:
    """The error at the top of the response."""
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
