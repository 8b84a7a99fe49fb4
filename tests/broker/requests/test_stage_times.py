"""Which requests are timed, and what each stage is; time is a list of readings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from kpybroker.broker.loop import loop_time
from kpybroker.broker.loop.steps import Steps, run_steps
from kpybroker.broker.requests import stage_times
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.broker.requests.stage_times import EVERY, FIRST, NEVER, StageTimes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ProtocolError
from tests.broker.replication.test_traffic import fetch, produce
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch


@dataclass
class FakeRoute:
    key: ApiKey = ApiKey.FETCH
    requests: int = 0
    timed_from: int = NEVER
    timed_last: int = 0
    timed_first: int = 0


@dataclass
class Time:
    """Nanoseconds, moved by hand."""

    now_ns: int = 1_000_000_000
    woke_s: float = field(default=1.0)

    def __call__(self) -> int:
        return self.now_ns

    def pass_us(self, microseconds: int) -> None:
        self.now_ns += microseconds * 1000


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(stage_times, "perf_counter_ns", made)
    monkeypatch.setattr(loop_time, "perf_counter_ns", made)
    return made


def serve(times: StageTimes, route: FakeRoute) -> bool:
    """One request with its response at once; whether it was timed."""
    route.requests += 1
    if route.requests < route.timed_from:
        return False
    timing = times.begin(route, 100)
    timing.responded()
    timing.sending()
    assert timing.sent()
    return True


def test_a_fetch_is_timed_once_more_by_who_fetches() -> None:
    times, route = StageTimes(lambda: 0.0), FakeRoute()
    times.tick([route])
    assert serve(times, route)
    route.requests += 1
    timing = times.begin(route, 70)
    timing.is_of_follower()
    timing.responded()
    assert timing.sent()
    of_both, of_consumers, of_followers = times.apis[ApiKey.FETCH], times.consumer_fetches, times.follower_fetches
    for stages, count, size in ((of_both, 2, 170), (of_consumers, 1, 100), (of_followers, 1, 70)):
        assert (stages.total.count, stages.size.count, stages.size.total) == (count, count, size)


def test_nothing_is_timed_before_the_first_tick() -> None:
    times, route = StageTimes(lambda: 0.0), FakeRoute()
    assert not any(serve(times, route) for _ in range(1000))
    times.tick([route])
    assert serve(times, route)
    assert times.apis[ApiKey.FETCH].total.count == 1  # the thousand before are not in the count


def test_after_a_tick_some_are_timed_and_then_one_in_many_that_counts_for_the_others() -> None:
    times, route = StageTimes(lambda: 0.0), FakeRoute()
    times.tick([route])
    timed = [number for number in range(1, FIRST + 2 * EVERY + 1) if serve(times, route)]
    assert timed == [*range(1, FIRST + 1), FIRST + EVERY, FIRST + 2 * EVERY]
    stages = times.apis[ApiKey.FETCH]
    assert {histogram.count for histogram in stages.all()} == {FIRST + 2 * EVERY}
    assert stages.size.sum == 100 * (FIRST + 2 * EVERY)
    times.tick([route])
    assert serve(times, route)


def test_stages(time: Time) -> None:
    times, route = StageTimes(lambda: time.woke_s), FakeRoute(requests=1)

    def steps() -> Steps[str]:
        time.pass_us(300)
        yield trio.lowlevel.checkpoint
        time.pass_us(20)
        return "response"

    async def main() -> None:
        time.pass_us(50)
        timing = times.begin(route, 64)
        unfinished = run_steps(timing.around(steps()))
        assert not isinstance(unfinished, str)
        time.pass_us(4000)
        assert await unfinished == "response"
        timing.throttle_ms = 3
        time.pass_us(7)
        timing.sending()
        time.pass_us(11)
        assert timing.sent()

    trio.run(main)
    stages = times.apis[ApiKey.FETCH]
    sums = [round(histogram.sum, 3) for histogram in stages.all()]
    assert sums == [0.05, 0.32, 4.0, 3.0, 0.007, 0.011, 4.388, 64]


def test_a_request_without_a_response_is_not_counted() -> None:
    times, route = StageTimes(lambda: 0.0), FakeRoute(requests=1)

    def failing() -> Steps[str]:
        raise ProtocolError("no")
        yield

    timing = times.begin(route, 64)
    with pytest.raises(ProtocolError):
        run_steps(timing.around(failing()))
    assert not timing.has_responded
    assert times.apis[ApiKey.FETCH].total.count == 0


def test_the_end_of_another_response_does_not_end_the_timing() -> None:
    times, route = StageTimes(lambda: 0.0), FakeRoute(requests=1)
    timing = times.begin(route, 64)
    timing.sending()
    assert not timing.sent()
    assert times.apis[ApiKey.FETCH].total.count == 0


async def test_one_request_of_a_connection_is_timed_until_its_response_is_sent_or_there_is_none(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        times, connection = StageTimes(lambda: broker.stall.woke), PlainConnectionInfo()
        broker.dispatcher.time_requests(times)
        await ask(broker, fetch("t"), 12, connection=connection)
        timing = connection.timing
        assert timing is not None
        assert timing.has_responded
        await ask(broker, fetch("t"), 12, connection=connection)
        assert connection.timing is timing
        assert times.apis[ApiKey.FETCH].size.count == 1
        connection.timing = None
        with pytest.raises(ProtocolError):  # with acks=0 there is no other way to report the error
            await ask(broker, produce("unknown", batch(b"one"), acks=0), 9, connection=connection)
        assert connection.timing is None
        assert times.apis[ApiKey.PRODUCE].size.count == 1
        assert times.apis[ApiKey.PRODUCE].total.count == 0


async def test_the_dispatcher_times_its_responses_and_counts_codes(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        times = StageTimes(lambda: broker.stall.woke)
        await ask(broker, produce("t", batch(b"before")), 9)
        broker.dispatcher.time_requests(times)
        await ask(broker, produce("t", batch(b"one")), 9)
        await ask(broker, produce("unknown", batch(b"two")), 9)
        await ask(broker, fetch("t"), 12)
        assert times.apis[ApiKey.PRODUCE].size.count == 2
        assert times.apis[ApiKey.FETCH].size.count == 1
        route = next(route for route in broker.dispatcher.routes if route.key is ApiKey.PRODUCE)
        assert (route.requests, route.plain_requests, route.error_counts) == (3, 1, {3: 1})
