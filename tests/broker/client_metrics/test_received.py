"""The receiver of a broker: off the loop, refused, queried, waited for."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from kpybroker.broker.client_metrics.received import LOG_INTERVAL_S, TEXT_CHARS_MAX, ReceivedMetrics
from kpybroker.broker.client_metrics.receiver import InvalidMetrics, Pushed
from kpybroker.broker.loop.slow_work import SlowWork
from kpybroker.metrics.clients import table
from tests.support.brokers.fake_broker import FakeClock
from tests.support.metrics.pushes import CREATIONS, QUEUE_TIME, gauge, metrics_data, pushed, total


@pytest.fixture
def received() -> ReceivedMetrics:
    host: Any = SimpleNamespace(slow_work=SlowWork(), clock=FakeClock())
    return ReceivedMetrics(host)


async def test_what_is_pushed_is_found(received: ReceivedMetrics) -> None:
    assert (received.clients(), list(received.series())) == ([], [])
    await received.receive(pushed(metrics_data(gauge(QUEUE_TIME, 1.5), total(CREATIONS, 2), group_id="g")))
    await received.receive(pushed(metrics_data(gauge(QUEUE_TIME, 9)), client_id="other", instance=2))
    first, other = received.clients()
    assert (first.client_id, first.resource, first.address) == ("orders", (("group_id", "g"),), "10.0.0.1")
    assert other.client_id == "other"
    (found,) = received.series("orders", QUEUE_TIME)
    assert [one.value for one in found.series] == [1.5]


async def test_what_is_no_otlp_is_refused_and_changes_nothing(received: ReceivedMetrics) -> None:
    await received.receive(pushed(metrics_data(gauge(QUEUE_TIME, 1))))
    with pytest.raises(InvalidMetrics) as caught:
        await received.receive(pushed(b"\xff" * 50))
    assert str(caught.value)
    assert [one.pushes for one in received.clients()] == [1]


async def test_a_push_without_metrics_is_one(received: ReceivedMetrics) -> None:
    await received.receive(pushed(b""))
    assert [(one.pushes, one.series) for one in received.series()] == [(1, ())]


async def test_a_client_that_ends_says_so(received: ReceivedMetrics) -> None:
    await received.receive(pushed(metrics_data(), terminating=True))
    assert [one.is_terminated for one in received.clients()] == [True]


async def test_clients_are_forgotten_by_the_brokers_clock(
    received: ReceivedMetrics, autojump_clock: trio.testing.MockClock
) -> None:
    await push_one(received)
    await trio.sleep(89)
    assert len(received.clients()) == 1
    await trio.sleep(2)
    assert received.clients() == []


async def push_one(received: ReceivedMetrics) -> None:
    await received.receive(pushed(metrics_data(gauge(QUEUE_TIME, 1))))


async def test_long_texts_of_a_client_are_cut(received: ReceivedMetrics) -> None:
    await received.receive(Pushed(bytes(16), "c" * 5000, "s" * 5000, "v" * 5000, "10.0.0.1", False, b""))
    (found,) = received.clients()
    assert {len(one) for one in (found.client_id, found.software_name, found.software_version)} == {TEXT_CHARS_MAX}


async def test_others_run_while_a_large_push_is_decoded(received: ReceivedMetrics) -> None:
    """It is decoded in a thread: the loop goes on until it has a result."""
    steps = 0
    done = trio.Event()

    async def push() -> None:
        await received.receive(pushed(metrics_data(*(gauge(f"g{n}", n) for n in range(1900)))))
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(push)
        while not done.is_set():
            steps += 1
            await trio.lowlevel.checkpoint()
    assert steps > 1
    assert len(next(received.series()).series) == 1900


async def test_a_push_is_waited_for(received: ReceivedMetrics) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(received.wait_push)
        await trio.testing.wait_all_tasks_blocked()
        await push_one(received)


async def test_values_that_are_left_out_are_logged_once_a_minute(
    received: ReceivedMetrics,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table, "SERIES_MAX", 1)
    caplog.set_level(logging.WARNING)
    many = pushed(metrics_data(gauge("a", 1), gauge("b", 2)), client_id="evil\nline")
    await received.receive(many)
    await received.receive(many)
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("Client 'evil\\nline' at 10.0.0.1 pushed 1 values that are not kept: they are too many")
    await trio.sleep(LOG_INTERVAL_S)
    await received.receive(many)
    assert len(caplog.records) == 2
