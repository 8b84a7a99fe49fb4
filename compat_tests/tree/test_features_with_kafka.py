"""Kafka 3.9 supports no features: one that is registered keeps them from being finalized, and none joins after that."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.client.actions.features import known_by
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.testing import Broker as OwnBroker
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest
from tests.support.network.ports import free_port

SESSION_S = 18
"""How long a session of Kafka's lasts."""
GROUPS = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=1)


def test_a_registered_kafka_3_9_blocks_an_upgrade_and_is_kept_out_after_it(tmp_path: Path) -> None:
    port = free_port()
    keys = {"kpybroker.zookeeper.port": port, "kpybroker.new.cluster.features": "none"}
    with (
        OwnBroker(in_thread=True, config=keys) as own,
        WireCluster(load(Connection(own.bootstrap_servers, None, (), 60.0))) as wire,
    ):

        def upgrade() -> str | None:
            request = UpdateFeaturesRequest(feature_updates=[GROUPS])
            text: str | None = wire.any().request(ApiKey.UPDATE_FEATURES, request).error_message
            return text

        kafka = Broker("kafka", tmp_path / "one", f"127.0.0.1:{port}", {"broker.id": "1"})
        try:
            kafka.start()
            refused = upgrade()
            assert refused is not None
            assert refused.endswith("for feature group.version. Broker 1 does not support this feature.")
            assert known_by(wire.any()).finalized == {}
        finally:
            kafka.service.kill()
        own.clock.advance(seconds=SESSION_S)
        eventually(lambda: upgrade() is None, "the registration of the killed broker is gone")
        assert known_by(wire.any())[1:] == ({"group.version": 1}, 1)

        late = Broker("kafka", tmp_path / "two", f"127.0.0.1:{port}", {"broker.id": "2"})
        try:
            with pytest.raises(RuntimeError):
                late.start()
            assert "feature compatibility checks failed" in late.service.output()
        finally:
            late.service.kill()
