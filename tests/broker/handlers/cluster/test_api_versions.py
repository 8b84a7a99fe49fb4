"""ApiVersions: the features that a broker supports, and those that are finalized, with their epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.served.apis import CLIENT_METRICS, SERVED
from kpybroker.broker.requests.served.kafka_releases import BETWEEN_BROKERS, RELEASES, capped, versions_of
from kpybroker.config.keys.own import KAFKA_VERSIONS
from kpybroker.core.features import VersionRange
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest
from tests.support.brokers.running_broker import ask, running_broker

GROUPS = {"group.version": VersionRange(0, 1)}
JAVA = "apache-kafka-java"


async def api_versions(broker: Broker, version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=JAVA, client_software_version="4.3.1")
    response: ApiVersionsResponse = await ask(broker, request, version)
    return response


def features(response: ApiVersionsResponse) -> tuple[object, object, int]:
    return (
        {one.name: (one.min_version, one.max_version) for one in response.supported_features},
        {one.name: (one.min_version_level, one.max_version_level) for one in response.finalized_features},
        response.finalized_features_epoch,
    )


def listed(response: ApiVersionsResponse) -> dict[ApiKey, tuple[int, int]]:
    return {ApiKey(one.api_key): (one.min_version, one.max_version) for one in response.api_keys}


async def test_without_features_there_is_the_epoch_alone(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features={}) as broker:
        assert features(await api_versions(broker, 4)) == ({}, {}, 0)
        assert features(await api_versions(broker, 3)) == ({}, {}, 0)
        assert features(await api_versions(broker, 2)) == ({}, {}, -1)  # it has no place for features


async def test_features_from_0_are_supported_from_version_4_on_and_finalized_in_all(tmp_path: Path) -> None:
    supported = {**GROUPS, "other": VersionRange(1, 2)}
    async with running_broker(tmp_path, features=supported) as broker:
        finalized = {"group.version": (1, 1), "other": (2, 2)}
        everything = {"group.version": (0, 1), "other": (1, 2)}
        assert features(await api_versions(broker, 4)) == (everything, finalized, 0)
        assert features(await api_versions(broker, 3)) == ({"other": (1, 2)}, finalized, 0)


async def test_the_epoch_rises_with_every_change_and_a_restart_keeps_it(tmp_path: Path) -> None:
    down = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    up = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=1)
    async with running_broker(tmp_path, features=GROUPS, keeps=True) as broker:
        assert features(await api_versions(broker, 4))[1:] == ({"group.version": (1, 1)}, 0)
        assert (await ask(broker, UpdateFeaturesRequest(feature_updates=[down]), 2)).error_code == 0
        assert features(await api_versions(broker, 4))[1:] == ({}, 1)
    async with running_broker(tmp_path, features=GROUPS, keeps=True) as broker:
        assert features(await api_versions(broker, 4)) == ({"group.version": (0, 1)}, {}, 1)
        assert (await ask(broker, UpdateFeaturesRequest(feature_updates=[up]), 2)).error_code == 0
        assert features(await api_versions(broker, 4))[1:] == ({"group.version": (1, 1)}, 2)


@pytest.mark.parametrize("release", KAFKA_VERSIONS)
async def test_a_broker_in_the_place_of_a_release_lists_what_that_served(tmp_path: Path, release: str) -> None:
    supported = {**GROUPS, "share.version": VersionRange(0, 1), "streams.version": VersionRange(0, 1)}
    async with running_broker(tmp_path, features=supported, kpybroker_kafka_version=release) as broker:
        response = await api_versions(broker, 4)
        unlisted = {ApiKey.CONSUMER_GROUP_DESCRIBE} if release == "3.9" else CLIENT_METRICS  # no one subscribes
        expected = capped(SERVED, versions_of(release))
        assert listed(response) == {key: expected[key] for key in expected.keys() - unlisted}
        since = {"group.version": "4.0", "share.version": "4.1", "streams.version": "4.2"}
        levels = {name: 1 for name, first in since.items() if release >= first}
        assert features(response)[1] == {name: (level, level) for name, level in levels.items()}
        assert features(response)[0] == {name: (0, level) for name, level in levels.items()}
        assert BETWEEN_BROKERS.isdisjoint(listed(response)) == (release != "3.9")
    assert release in RELEASES


@pytest.mark.parametrize("release", ["3.9", "4.0"])
async def test_a_release_without_old_versions_of_produce_advertises_and_refuses_them(
    tmp_path: Path, release: str
) -> None:
    async with running_broker(tmp_path, kpybroker_kafka_version=release) as broker:
        assert listed(await api_versions(broker, 4))[ApiKey.PRODUCE] == (0, 11 if release == "3.9" else 12)
        await ask(broker, ProduceRequest(acks=1), 3)
        if release == "3.9":
            await ask(broker, ProduceRequest(acks=1), 2)
        else:
            with pytest.raises(ProtocolError, match="PRODUCE version 2 is not served"):
                await ask(broker, ProduceRequest(acks=1), 2)
