"""A slice of `make exchange`: kpybroker writes, Kafka 3.9.1 takes over and is killed, kpybroker takes over from it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.exchange.exchange import Exchange
from compat_tests.exchange.seat import Seat
from compat_tests.support.services import ZooKeeper

TURNS = (("kpybroker", "stop"), ("kafka", "kill"), ("kpybroker", "stop"))


@pytest.fixture
def seat(tmp_path: Path) -> Iterator[Seat]:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    made = Seat(tmp_path / "seat", f"{zookeeper.connect}/exchange")
    try:
        zookeeper.start()
        yield made
    finally:
        made.close()
        zookeeper.stop()


@pytest.mark.wide
def test_the_brokers_take_turns_on_one_directory(seat: Seat, request: pytest.FixtureRequest) -> None:
    if request.config.option.broker == "kafka":
        pytest.skip("both brokers take part already")
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    exchange = Exchange(seat, seed, is_thorough=False)
    for kind, end in TURNS:
        exchange.turn(kind, end)
    assert exchange.problems == []
