"""UpdateFeatures 0-2 at a controller; the rules themselves: tests/core/controller/features."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio.testing

from kpybroker.broker.handlers.cluster import update_features
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import Finalized, VersionRange
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from tests.support.brokers.control_broker import ControlBroker, Denying, call, running_broker
from tests.support.brokers.running_broker import ask
from tests.support.brokers.running_cluster import running_cluster

Key = UpdateFeaturesRequest.FeatureUpdateKey
SUPPORTED = {"group.version": VersionRange(0, 1)}
FAILED = "The update failed for all features since the following feature had an error: "
LACKS = "Broker 2 does not support this feature."


def request(*updates: Key, validate_only: bool = False, timeout_ms: int = 60_000) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(feature_updates=list(updates), validate_only=validate_only, timeout_ms=timeout_ms)


def key(level: int, name: str = "group.version", upgrade_type: int = 1, allow_downgrade: bool = False) -> Key:
    return Key(feature=name, max_version_level=level, upgrade_type=upgrade_type, allow_downgrade=allow_downgrade)


def results(response: UpdateFeaturesResponse) -> dict[str, tuple[int, str | None]]:
    return {one.feature: (one.error_code, one.error_message) for one in response.results}


async def update(
    broker: ControlBroker, version: int, *updates: Key, validate_only: bool = False
) -> UpdateFeaturesResponse:
    wanted = request(*updates, validate_only=validate_only)
    response: UpdateFeaturesResponse = await call(broker, update_features, wanted, version)
    return response


@pytest.mark.parametrize("version", [0, 1])
async def test_each_feature_has_its_result(version: int) -> None:
    async with running_broker(features=SUPPORTED, kpybroker_new_cluster_features="none") as broker:
        response = await update(broker, version, key(1), key(1, "other"), key(30, "metadata.version"))
        refused = (
            ErrorCode.INVALID_REQUEST,
            "Could not apply finalized feature update because the provided feature is not supported.",
        )
        assert results(response) == {"group.version": (0, "NONE"), "other": refused, "metadata.version": refused}
        assert (response.error_code, response.error_message) == (0, None)
        # It is known here before the response is sent.
        assert broker.metadata.snapshot.features == Finalized({"group.version": 1}, 1)


async def test_version_0_downgrades_where_it_is_allowed() -> None:
    async with running_broker(features=SUPPORTED) as broker:
        (refused,) = (await update(broker, 0, key(0))).results
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        (lowered,) = (await update(broker, 0, key(0, allow_downgrade=True))).results
        assert lowered.error_code == 0
        assert broker.metadata.snapshot.features == Finalized({}, 1)


async def test_version_2_is_all_or_nothing() -> None:
    async with running_broker(features=SUPPORTED, kpybroker_new_cluster_features="none") as broker:
        response = await update(broker, 2, key(1), key(1, "other"))
        assert (response.error_code, response.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
        assert response.error_message == (
            f"{FAILED}Invalid update version 1 for feature other. Local controller 0 does not support this feature."
        )
        assert broker.metadata.snapshot.features == Finalized({}, 0)
        response = await update(broker, 2, key(1))
        assert (response.error_code, response.error_message, response.results) == (0, None, [])
        assert broker.metadata.snapshot.features == Finalized({"group.version": 1}, 1)
        assert (await update(broker, 2, key(0))).error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert (await update(broker, 2, key(0, upgrade_type=2))).error_code == 0
        assert broker.metadata.snapshot.features == Finalized({}, 2)


@pytest.mark.parametrize("version", [0, 1])
async def test_in_the_place_of_kafka_4_older_versions_are_all_or_nothing_too(version: int) -> None:
    async with running_broker(
        features=SUPPORTED, kpybroker_new_cluster_features="none", kpybroker_kafka_version="4.0"
    ) as broker:
        response = await update(broker, version, key(1), key(1, "other"))
        assert (response.error_code, response.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
        response = await update(broker, version, key(1), key(1))
        named = [(one.feature, one.error_code, one.error_message) for one in response.results]
        assert (response.error_code, named) == (0, [("group.version", 0, "NONE")] * 2)
        response = await update(broker, version, key(0, upgrade_type=2 if version else 1, allow_downgrade=version == 0))
        assert response.error_code == (0 if version else ErrorCode.INVALID_UPDATE_VERSION)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_validation_changes_nothing(version: int) -> None:
    async with running_broker(features=SUPPORTED, kpybroker_new_cluster_features="none") as broker:
        response = await update(broker, version, key(1), validate_only=True)
        assert response.error_code == 0
        assert results(response) == ({"group.version": (0, "NONE")} if version == 1 else {})
        assert broker.metadata.snapshot.features == Finalized({}, 0)


@pytest.mark.parametrize("version", range(3))
async def test_refusals_of_the_whole_request(version: int) -> None:
    denying = Denying([(Operation.ALTER, ResourceType.CLUSTER, None)])
    async with running_broker(features=SUPPORTED) as broker:
        denied = await call(broker, update_features, request(key(1)), version, authorizer=denying)
        broker.controller.machine.parts.active_controller_id = 7
        elsewhere = await call(broker, update_features, request(key(1)), version)
    assert (denied.error_code, denied.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert (elsewhere.error_code, elsewhere.results) == (ErrorCode.NOT_CONTROLLER, [])


@pytest.mark.parametrize("version", range(3))
async def test_a_broker_that_does_not_learn_of_it_in_time_says_so(
    version: int, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(features=SUPPORTED, kpybroker_new_cluster_features="none") as broker:
        monkeypatch.setattr(broker.metadata, "finalize", lambda finalized: None)
        response = await update(broker, version, key(1))
    if version == 2:
        assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    else:
        ((code, _),) = results(response).values()
        assert code == ErrorCode.FEATURE_UPDATE_FAILED


async def test_three_brokers_of_which_one_lacks_the_feature(tmp_path: Path) -> None:
    """It is named, and only the controller updates; once it is gone, every broker has the new level."""
    async with running_cluster(tmp_path, kpybroker_new_cluster_features="none") as cluster:
        cluster.features |= {0: SUPPORTED, 1: SUPPORTED, 2: {}}
        await cluster.start(0, 1, 2)
        controller = cluster.controller
        assert controller.node_id == 0
        response = await ask(cluster.brokers[1], request(key(1)), 2)
        assert response.error_code == ErrorCode.NOT_CONTROLLER
        response = await ask(controller, request(key(1)), 2)
        assert response.error_message == f"{FAILED}Invalid update version 1 for feature group.version. {LACKS}"
        (result,) = (await ask(controller, request(key(1)), 1)).results
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message.endswith(f"incompatible versions for the feature. {LACKS}")
        assert all(one.metadata.snapshot.features == Finalized({}, 0) for one in cluster.brokers.values())

        await cluster.stop(2)
        assert (await ask(controller, request(key(1)), 2)).error_code == 0
        with trio.fail_after(30):
            for broker in cluster.brokers.values():
                await broker.metadata.wait_until(lambda snapshot: snapshot.features.epoch == 1, 30)
                assert broker.metadata.snapshot.features.levels == {"group.version": 1}
