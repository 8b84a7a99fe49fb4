"""SIGKILL under load, again and again, also on a real ZooKeeper: what was acknowledged is there, once and in order.

`make soak` does the same two hundred times; a failure here prints its seed for `--seed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.crash.soak import OVERRIDES, Soak
from compat_tests.support.services import Broker, ZooKeeper

KILLS = 3, 10
"""In `make test`, and with the wide tests."""
KILLS_ON_ZOOKEEPER = 3


@pytest.fixture
def broker_on_zookeeper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    broker = Broker(request.config.option.broker, tmp_path / "broker", f"{zookeeper.connect}/killed", OVERRIDES)
    try:
        zookeeper.start()
        broker.start()
        yield broker
    finally:
        broker.service.kill()
        zookeeper.stop()


@pytest.mark.parametrize("kills", [KILLS[0], pytest.param(KILLS[1], marks=pytest.mark.wide)])
def test_kill(own_broker: StartBroker, seed: int, kills: int) -> None:
    broker = own_broker(**{key.replace(".", "_"): value for key, value in OVERRIDES.items()})
    # Kafka takes ten seconds to come back.
    assert Soak(broker, seed).run(kills if broker.kind == "kpybroker" else KILLS_ON_ZOOKEEPER) == []


@pytest.mark.wide
def test_kill_on_zookeeper(broker_on_zookeeper: Broker, seed: int) -> None:
    assert Soak(broker_on_zookeeper, seed).run(KILLS_ON_ZOOKEEPER) == []
