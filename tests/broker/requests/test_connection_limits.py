"""How many connections are accepted, and how fast: of the broker, a listener, an address."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.requests import connection_limits
from kpybroker.broker.requests.connection_limits import ConnectionLimits
from tests.support.brokers.fake_broker import FakeClock
from tests.support.network.echo_server import HOST, Client, Config, House
from tests.support.network.memory_transport import MemoryTransport

BETWEEN = "REPLICATION"


class Named(House):
    """Listeners have names: the first is CLIENT, the second the one between brokers."""

    def __init__(self, config: Config, listeners: int = 1) -> None:
        super().__init__(MemoryTransport(), config, listeners)
        self.names = ["CLIENT", BETWEEN, "OTHER"][:listeners]
        self.server.limits._clock = FakeClock()


async def served(house: House, listener: int = 0) -> Client:
    client = await house.connect(listener)
    assert await client.ask(b"x") == b"x"
    return client


async def is_waiting(house: House, listener: int = 0) -> Client:
    client = await house.connect(listener)
    await client.send(b"x")
    before = house.server.connection_count
    await trio.testing.wait_all_tasks_blocked(0.01)
    assert house.server.connection_count == before
    return client


async def test_a_listener_may_have_a_limit_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    config = Config()
    config.values["listener.name.client.max.connections"] = 1

    async def scenario(house: House) -> None:
        await trio.testing.wait_all_tasks_blocked()
        first = await served(house)
        waiting = await is_waiting(house)
        await served(house, 1)
        await served(house, 2)
        first.stream.close()
        assert await waiting.receive() == b"x"

    await Named(config, 3).run(scenario)


async def test_the_listener_between_brokers_is_not_bound_by_the_brokers_limit(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It accepts, and the connection that was idle longest on another listener ends. Its own limit binds it."""
    config = Config(max_connections=2)
    config.values["listener.name.replication.max.connections"] = 3

    async def scenario(house: House) -> None:
        oldest, other = await served(house), await served(house)
        await trio.sleep(70)  # both are idle
        assert await other.ask(b"x") == b"x"
        await served(house, 1)
        assert await oldest.receive() is None
        assert await other.ask(b"x") == b"x"
        await served(house, 1)
        assert await other.receive() is None
        await served(house, 1)
        assert house.server.connection_count == 3
        await is_waiting(house, 1)

    await Named(config, 2).run(scenario)


async def test_a_listener_between_brokers_that_is_the_only_one_is_bound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limits = ConnectionLimits(Config(), FakeClock())  # type: ignore[arg-type]
    limits.listen(1)
    assert not limits.is_protected(BETWEEN)
    limits.listen(2)
    assert limits.is_protected(BETWEEN)
    assert not limits.is_protected("CLIENT")


async def test_a_lower_limit_ends_the_connections_that_are_too_many(autojump_clock: trio.testing.MockClock) -> None:
    config = Config()

    async def scenario(house: House) -> None:
        clients = [await served(house) for _ in range(3)]
        await trio.sleep(70)
        assert await clients[1].ask(b"x") == b"x"
        config.values["max.connections"] = 1
        config.announce_change()
        assert [await clients[n].receive() for n in (0, 2)] == [None, None]
        assert await clients[1].ask(b"x") == b"x"

    await Named(config).run(scenario)


async def accepted_within(house: House, seconds: float, listener: int = 0) -> int:
    """How many connections are accepted when clients open one after the other."""
    count = 0
    with trio.move_on_after(seconds):
        while True:
            await served(house, listener)
            count += 1
    return count


async def test_connections_of_the_broker_are_accepted_at_its_rate(autojump_clock: trio.testing.MockClock) -> None:
    """Ten seconds of windows may begin with a burst; after that it is the rate, and never a refusal.

    Kafka's samples cover up to a window more than they are divided by, so it is a little less.
    """

    async def scenario(house: House) -> None:
        burst = await accepted_within(house, 0.001)
        assert 50 <= burst <= 52
        assert burst + await accepted_within(house, 60) == pytest.approx(5 * 60, abs=55)
        assert await accepted_within(house, 60) == pytest.approx(5 * 60, rel=0.1)
        assert house.server.refused_total == 0

    await Named(Config(max_connection_creation_rate=5)).run(scenario)


async def test_a_listener_may_have_a_rate_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    config = Config()
    config.values["listener.name.client.max.connection.creation.rate"] = 5

    async def scenario(house: House) -> None:
        await accepted_within(house, 60)
        assert await accepted_within(house, 60) == pytest.approx(5 * 60, rel=0.1)
        for _ in range(200):
            await served(house, 1)

    await Named(config, 2).run(scenario)


async def test_the_listener_between_brokers_is_not_slowed_by_the_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    config = Config(max_connection_creation_rate=5)
    config.values["listener.name.replication.max.connection.creation.rate"] = 2**31 - 1

    async def scenario(house: House) -> None:
        await accepted_within(house, 20)
        began = trio.current_time()
        for _ in range(100):
            await served(house, 1)
        assert trio.current_time() - began < 1

    await Named(config, 2).run(scenario)


async def test_connections_of_an_address_are_closed_after_the_time_they_would_have_to_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(house: House) -> None:
        house.server.limits.set_default_ip_rate(5)
        clients = [await served(house) for _ in range(50)]
        began = trio.current_time()
        refused = await house.connect()
        assert await refused.receive() is None
        assert 0 < trio.current_time() - began <= 1, "one window at most"
        assert await clients[0].ask(b"x") == b"x"
        assert house.server.refused_total == 1
        house.server.limits.set_ip_rate(HOST, 1000)
        await served(house)
        house.server.limits.set_ip_rate(HOST, None)
        assert await (await house.connect()).receive() is None
        house.server.limits.set_default_ip_rate(None)
        await served(house)

    await Named(Config()).run(scenario)


async def test_a_connection_that_is_refused_does_not_count(autojump_clock: trio.testing.MockClock) -> None:
    """The address gets its whole rate, however often it tries; and so does the broker (KIP-612)."""

    async def scenario(house: House) -> None:
        house.server.limits.set_default_ip_rate(5)
        accepted = 0
        end = trio.current_time() + 60
        while trio.current_time() < end:
            client = await house.connect()
            await client.send(b"x")
            accepted += await client.receive() == b"x"
        assert accepted == pytest.approx(5 * 60 + 50, rel=0.1)

    await Named(Config(max_connection_creation_rate=1000)).run(scenario)


async def test_few_connections_wait_to_be_closed(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "DELAYED_MAX", 1)

    async def scenario(house: House) -> None:
        house.server.limits.set_default_ip_rate(0)
        first, second = await house.connect(), await house.connect()
        await second.receive()
        began = trio.current_time()
        assert await first.receive() is None
        assert trio.current_time() > began

    await Named(Config()).run(scenario)


async def test_few_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "RATES_MAX", 2)
    limits: Any = ConnectionLimits(Config(), FakeClock())  # type: ignore[arg-type]
    limits.set_default_ip_rate(100)
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.3"):
        assert await limits._admit("CLIENT", address) is None
    assert list(limits._address_rates) == ["10.0.0.1", "10.0.0.3"]
