"""A broker and the features that its cluster has finalized: what starts, what is refused, what has to stop."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle import errors
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.features import Finalized, Ranges, VersionRange
from kpybroker.wire import znodes
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest
from tests.support.brokers.running_broker import ask, running_broker, settings
from tests.support.network.memory_transport import MemoryTransport

NEWEST = Finalized({"group.version": 1, "share.version": 1, "streams.version": 1, "transaction.version": 2}, 0)
GROUPS = {"group.version": VersionRange(0, 1)}
FINALIZED = znodes.encode_features(znodes.FinalizedFeatures(True, {"group.version": 1}))


async def start(directory: Path, features: Ranges | None = None, **keys: str) -> Finalized:
    """Start on the embedded tree of the directory, and stop; what was finalized."""
    config = BrokerConfig(settings(directory, **keys))
    async with Broker.open(config, transport=MemoryTransport(), features=features) as broker:
        return broker.metadata.snapshot.features


async def refusal(directory: Path, features: Ranges | None = None, **keys: str) -> StartupError:
    with trio.fail_after(30), pytest.raises(StartupError) as raised:
        await start(directory, features, **keys)
    return raised.value


async def test_a_release_below_what_is_finalized_is_refused_with_the_command_that_lowers_it(tmp_path: Path) -> None:
    assert await start(tmp_path, GROUPS) == Finalized({"group.version": 1}, 0)
    error = await refusal(tmp_path, GROUPS, kpybroker_kafka_version="3.9")
    assert error.exit_code == errors.EXIT_CONFIG
    assert error.cause == (
        "the cluster has finalized group.version=1, "
        "which this broker, with kpybroker.kafka.version=3.9, does not support"
    )
    assert error.fix == (
        "start it without kpybroker.kafka.version (dev: --kafka-version); "
        "to use this one, first lower the level there: kpybroker feature downgrade group.version=0"
    )
    down = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    async with running_broker(tmp_path, features=GROUPS, keeps=True) as broker:
        assert (await ask(broker, UpdateFeaturesRequest(feature_updates=[down]), 2)).error_code == 0
    assert await start(tmp_path, GROUPS, kpybroker_kafka_version="3.9") == Finalized({}, 1)


async def test_a_build_without_the_feature_is_refused_as_well(tmp_path: Path) -> None:
    await start(tmp_path, GROUPS)
    error = await refusal(tmp_path, {})
    assert error.cause == "the cluster has finalized group.version=1, which this kpybroker does not support"
    assert error.fix == (
        "start the kpybroker that supports it; to use this one, first lower the level there: "
        "kpybroker feature downgrade group.version=0"
    )


async def test_a_new_cluster_begins_with_the_newest_levels_of_this_build(tmp_path: Path) -> None:
    assert await start(tmp_path) == NEWEST
    assert await start(tmp_path) == NEWEST
    assert await start(tmp_path / "none", kpybroker_new_cluster_features="none") == Finalized({}, 0)


async def test_a_new_cluster_begins_with_what_the_release_had(tmp_path: Path) -> None:
    for release, levels in {"3.9": {}, "4.0": {"group.version": 1}, "4.3": {"group.version": 1}}.items():
        assert await start(tmp_path / release, GROUPS, kpybroker_kafka_version=release) == Finalized(levels, 0)


async def test_a_restart_with_a_newer_build_raises_nothing_and_says_how(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert await start(tmp_path, {}) == Finalized({}, 0)
    assert "kpybroker feature" not in caplog.text
    assert await start(tmp_path, GROUPS) == Finalized({}, 0)
    assert caplog.text.count("`kpybroker feature upgrade group.version=1` raises it") == 1


async def test_a_broker_stops_when_more_is_finalized_than_it_supports(tmp_path: Path) -> None:
    config = BrokerConfig(settings(tmp_path))
    with trio.fail_after(30):
        async with Broker.open(config, transport=MemoryTransport(), features={}) as broker:
            await broker.tree.set(znodes.FEATURE, FINALIZED)
            await broker.wait_stop_requested()
            assert broker.fatal is not None
            assert "has finalized group.version=1, which this kpybroker does not support" in broker.fatal.cause
            assert broker.metadata.snapshot.features == Finalized({}, 0)
