"""A broker follows `/feature`: levels in the order of epochs, never backwards, and nothing that it does not support."""

from __future__ import annotations

import json
import logging

import pytest
import trio.testing

from kpybroker.broker.cluster.features import UnsupportedFeatures
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.core import tree as t
from kpybroker.core.features import Finalized, VersionRange
from kpybroker.wire import znodes
from tests.support.brokers.control_broker import NOW_MS, ControlBroker, running_broker

GROUPS = {"group.version": VersionRange(0, 1)}
FINALIZED = znodes.encode_features(znodes.FinalizedFeatures(True, {"group.version": 1}))
NOTHING = znodes.encode_features(znodes.FinalizedFeatures(True, {}))


def new_store() -> EmbeddedStore:
    return EmbeddedStore.in_memory(lambda: NOW_MS)


async def written(broker: ControlBroker, data: bytes) -> Finalized:
    """What the broker knows after another program wrote `/feature`."""
    await broker.tree.set(znodes.FEATURE, data)
    await trio.testing.wait_all_tasks_blocked()
    return broker.metadata.snapshot.features


async def test_a_new_cluster_begins_with_what_is_supported_and_the_broker_knows_it_at_once() -> None:
    async with running_broker(features=GROUPS) as broker:
        assert broker.metadata.snapshot.features == Finalized({"group.version": 1}, 0)
        registered = znodes.decode_broker(0, (await broker.tree.get(znodes.broker_path(0))).data)
        assert registered.features == {"group.version": (0, 1)}


async def test_without_features_nothing_is_finalized_or_registered() -> None:
    async with running_broker(features={}) as broker:
        assert broker.metadata.snapshot.features == Finalized({}, 0)
        assert (await broker.tree.get(znodes.FEATURE)).data == b'{"features":{},"version":2,"status":1}'
        data = (await broker.tree.get(znodes.broker_path(0))).data
        assert data is not None
        assert json.loads(data)["features"] == {}


@pytest.mark.parametrize(("wanted", "levels"), [("none", {}), ("newest", {"group.version": 1})])
async def test_a_key_says_what_a_new_cluster_begins_with(wanted: str, levels: dict[str, int]) -> None:
    async with running_broker(features=GROUPS, kpybroker_new_cluster_features=wanted) as broker:
        assert broker.metadata.snapshot.features.levels == levels


async def test_changes_are_followed_and_a_restart_finds_them() -> None:
    store = new_store()
    async with running_broker(store, features=GROUPS) as broker:
        assert await written(broker, NOTHING) == Finalized({}, 1)
        assert await written(broker, FINALIZED) == Finalized({"group.version": 1}, 2)
        assert await written(broker, NOTHING) == Finalized({}, 3)
    async with running_broker(store, features=GROUPS) as broker:
        assert broker.metadata.snapshot.features == Finalized({}, 3)


async def test_changes_while_the_session_was_lost_are_found_by_the_next_one() -> None:
    store = new_store()
    async with running_broker(store, features=GROUPS) as broker:
        other = store.session()
        await other.start(1)
        await broker.tree.expire()
        await other.set(znodes.FEATURE, NOTHING)
        await trio.testing.wait_all_tasks_blocked()
        assert broker.metadata.snapshot.features == Finalized({}, 1)
        await other.close()


async def test_an_update_of_the_metadata_keeps_the_features() -> None:
    async with running_broker(features=GROUPS, topics={"t": 1}) as broker:
        assert broker.metadata.snapshot.features == Finalized({"group.version": 1}, 0)
        assert broker.metadata.contains("t")


async def test_a_node_that_was_made_again_does_not_lower_the_epoch(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker(features=GROUPS) as broker:
        await written(broker, NOTHING)
        known = await written(broker, FINALIZED)
        await broker.tree.delete(znodes.FEATURE)
        await trio.testing.wait_all_tasks_blocked()
        assert broker.metadata.snapshot.features == known
        assert "/feature is gone: the finalized features stay group.version=1, epoch 2" in caplog.text
        await broker.tree.create(znodes.FEATURE, NOTHING)
        await trio.testing.wait_all_tasks_blocked()
        assert broker.metadata.snapshot.features == known
        assert "/feature has version 0, which is older" in caplog.text
        await written(broker, NOTHING)
        assert await written(broker, NOTHING) == Finalized({}, 2)


async def test_a_node_that_cannot_be_read_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker(features=GROUPS) as broker:
        known = broker.metadata.snapshot.features
        assert await written(broker, b"{") == known
        assert "/feature cannot be read" in caplog.text
        assert await written(broker, NOTHING) == Finalized({}, 2)


async def test_a_disabled_node_has_no_features() -> None:
    disabled = znodes.encode_features(znodes.FinalizedFeatures(False, {"group.version": 1}))
    async with running_broker(features=GROUPS) as broker:
        assert await written(broker, disabled) == Finalized({}, 1)
    async with running_broker(features=GROUPS, inter_broker_protocol_version="2.6") as broker:
        assert broker.metadata.snapshot.features == Finalized({}, -1)


async def test_a_broker_does_not_start_where_more_is_finalized_than_it_supports() -> None:
    store = new_store()
    async with running_broker(store, features=GROUPS):
        pass
    with pytest.RaisesGroup(pytest.RaisesExc(UnsupportedFeatures, match="^group.version=1$"), flatten_subgroups=True):
        async with running_broker(store, features={}):
            raise AssertionError("it has started")


async def test_a_broker_that_runs_reports_what_it_does_not_support_and_keeps_what_it_knew() -> None:
    async with running_broker(features={}) as broker:
        assert await written(broker, FINALIZED) == Finalized({}, 0)
        (failure,) = broker.unsupported
        assert (str(failure), failure.highest) == ("group.version=1", {"group.version": 0})


async def test_an_existing_cluster_logs_how_to_raise_its_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka.server.FinalizedFeatureChangeListener")
    store = new_store()
    async with running_broker(store, features=GROUPS) as broker:
        broker.features.say_what_could_be_raised()
        assert "kpybroker feature upgrade" not in caplog.text
        await written(broker, NOTHING)
    async with running_broker(store, features=GROUPS) as broker:
        broker.features.say_what_could_be_raised()
        assert "`kpybroker feature upgrade group.version=1` raises it" in caplog.text
        assert broker.metadata.snapshot.features == Finalized({}, 1)


async def test_the_order_of_epochs_is_asserted() -> None:
    async with running_broker(features=GROUPS) as broker:
        await written(broker, NOTHING)
        with pytest.raises(AssertionError, match="falls"):
            broker.metadata.finalize(Finalized({}, 0))


async def test_a_tree_that_refuses_is_reported_at_the_start() -> None:
    store = new_store()
    async with running_broker(store) as broker:
        await broker.tree.close()
        with pytest.raises(t.TreeError):
            await broker.features.read()
