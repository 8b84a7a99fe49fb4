"""How long each stage of a request takes, for the metrics: Kafka's ``RequestChannel.updateRequestMetrics``.

Only while something reads the metrics. Requests are sampled: of each route (API and version) the first `FIRST` after
each tick are timed, then one in `EVERY`, which counts for those before it. A request that is timed has a `Timing`. Its
connection holds that until the response is sent, so at most one of a connection is timed at a time.

Stages: *queue* from the end of the loop's wait for input, *local* on the loop, *remote* what it waits for, *response
queue* until the socket gets the response, *send* until the socket has all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Final, NamedTuple, Protocol, TypeVar

from kpybroker.broker.loop.loop_time import LoopTime
from kpybroker.broker.loop.steps import Steps
from kpybroker.metrics.histogram import Histogram
from kpybroker.wire.api import ApiKey

T = TypeVar("T")

NEVER: Final = sys.maxsize
"""A route's `timed_from` while no one reads the metrics."""
EVERY: Final = 64
FIRST: Final = 8
NS_PER_US: Final = 1000


class Sampled(Protocol):
    """The part of a route that is used here. The request with the number `timed_from`, or a later one, is timed."""

    key: ApiKey
    requests: int
    timed_from: int
    timed_last: int
    timed_first: int


class Stages:
    """The distributions of one API. Times are in microseconds, exported as milliseconds."""

    __slots__ = ("local", "queue", "remote", "response_queue", "send", "size", "throttle", "total")

    def __init__(self) -> None:
        self.queue = Histogram(0.001)
        self.local = Histogram(0.001)
        self.remote = Histogram(0.001)
        self.throttle = Histogram(0.001)
        self.response_queue = Histogram(0.001)
        self.send = Histogram(0.001)
        self.total = Histogram(0.001)
        self.size = Histogram()

    def all(self) -> tuple[Histogram, ...]:
        """In the order of `metrics.tables.requests.STAGES`, then the size."""
        return (
            *(self.queue, self.local, self.remote, self.throttle),
            *(self.response_queue, self.send, self.total, self.size),
        )


class StageTimes:
    """Of all APIs. `woke_s` is when the loop's last wait for input ended, in seconds of `time.perf_counter`."""

    def __init__(self, woke_s: Callable[[], float]) -> None:
        self._woke_s = woke_s
        self.apis: dict[ApiKey, Stages] = {}
        self.consumer_fetches = Stages()
        """Fetches are counted twice, as in Kafka: in `apis`, and in one of these."""
        self.follower_fetches = Stages()

    def begin(self, route: Sampled, size: int) -> Timing:
        """Time the request that `route` has just counted; it has `size` bytes."""
        weight = route.requests - route.timed_last
        route.timed_last = route.requests
        route.timed_first -= 1
        route.timed_from = route.requests + (1 if route.timed_first > 0 else EVERY)
        stages = self.apis.get(route.key)
        if stages is None:
            stages = self.apis[route.key] = Stages()
        stages.size.record(size, weight)
        timing = Timing(stages, weight, int(self._woke_s() * 1e9))
        if route.key is ApiKey.FETCH:
            timing.fetch = Fetch(self, size)
        return timing

    @staticmethod
    def tick(routes: Iterable[Sampled]) -> None:
        """Time the next requests of each of these routes. Called every few seconds."""
        for route in routes:
            route.timed_first = FIRST
            if route.timed_from == NEVER:  # what came before counts for nothing
                route.timed_last = route.requests
            route.timed_from = route.requests + 1

    def rotate(self) -> None:
        """A window of the quantiles is over."""
        for stages in (*self.apis.values(), self.consumer_fetches, self.follower_fetches):
            for histogram in stages.all():
                histogram.rotate()


class Fetch(NamedTuple):
    """A fetch that is timed, of `size` bytes; `times` has the distributions of consumers and of followers."""

    times: StageTimes
    size: int
    is_follower: bool = False

    def stages(self) -> Stages:
        """Those that it belongs to."""
        return self.times.follower_fetches if self.is_follower else self.times.consumer_fetches


class Timing:
    """One request that is timed. `fetch`: of a fetch."""

    __slots__ = (
        "_began_ns",
        "_local_ns",
        "_responded_ns",
        "_sending_ns",
        "_stages",
        "_weight",
        "_woke_ns",
        "fetch",
        "loop_time",
        "throttle_ms",
    )

    def __init__(self, stages: Stages, weight: int, woke_ns: int) -> None:
        self._stages = stages
        self._weight = weight
        self._began_ns = perf_counter_ns()
        self._woke_ns = woke_ns or self._began_ns
        self._responded_ns = self._sending_ns = self._local_ns = 0
        self.loop_time = LoopTime()
        self.throttle_ms = 0
        self.fetch: Fetch | None = None

    def is_of_follower(self) -> None:
        """It is a fetch, by another broker."""
        if self.fetch is not None:
            self.fetch = self.fetch._replace(is_follower=True)

    def around(self, steps: Steps[T]) -> Steps[T]:
        """The steps of the request, up to its response."""
        result = yield from self.loop_time.around(steps)
        self.responded()
        return result

    @property
    def has_responded(self) -> bool:
        """Whether the response is known: what the connection does from now on is for another request."""
        return self._responded_ns != 0

    def responded(self) -> None:
        """The response is known."""
        self._local_ns = self.loop_time.take_ns()
        self._responded_ns = perf_counter_ns()

    def sending(self) -> None:
        """The response, if there is one, is about to be sent."""
        if self._responded_ns and not self._sending_ns:
            self._sending_ns = perf_counter_ns()

    def sent(self) -> bool:
        """All of a response is sent: count. Whether it is the one that is timed, and not that of an earlier request."""
        if not self._responded_ns:
            return False
        now_ns = perf_counter_ns()
        sending_ns = self._sending_ns or self._responded_ns
        self._record(self._stages, now_ns, sending_ns)
        if self.fetch is not None:
            also = self.fetch.stages()
            also.size.record(self.fetch.size, self._weight)
            self._record(also, now_ns, sending_ns)
        return True

    def _record(self, stages: Stages, now_ns: int, sending_ns: int) -> None:
        weight, responded_ns = self._weight, self._responded_ns
        stages.queue.record((self._began_ns - self._woke_ns) // NS_PER_US, weight)
        stages.local.record(self._local_ns // NS_PER_US, weight)
        stages.remote.record((responded_ns - self._began_ns - self._local_ns) // NS_PER_US, weight)
        stages.throttle.record(self.throttle_ms * 1000, weight)
        stages.response_queue.record((sending_ns - responded_ns) // NS_PER_US, weight)
        stages.send.record((now_ns - sending_ns) // NS_PER_US, weight)
        stages.total.record((now_ns - self._woke_ns) // NS_PER_US, weight)
