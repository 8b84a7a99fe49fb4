"""What a request counts against its client's quotas, and how its connection waits afterwards (KIP-219).

A `Metering` goes with a request that some quota limits, and with no other. When the response is known, `settle` counts
it, and puts the throttle time into the response. The dispatcher mutes the connection once that is sent: the broker
responds first, and then serves no further request until the time is over. `throttle_fetch` is the same for Fetch, whose
response is without records if its client has to wait.

Request time is time on the event loop, so 100 percent of it is everything that one broker has. (Kafka has 100 percent
for each of its threads.) Exempt, as in Kafka, are the requests of the other brokers (`EXEMPT`, fetches of followers).
The connection waits by the machine's clock, as its client does, and rates are those of the broker's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kpybroker.broker.loop.loop_time import LoopTime
from kpybroker.broker.loop.steps import Steps
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.core.security.quotas import ClientQuotas, MutationShare

T = TypeVar("T")

EXEMPT: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
    }
)
"""Requests between brokers. A client that may not make them is throttled all the same."""

INT_MAX: Final = 2**31 - 1
NS_PER_PERCENT: Final = 10_000_000
"""Nanoseconds of request time that are one percent of a second."""

FETCHING: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})

MUTATING: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)
"""What creates or deletes partitions, also by the way."""


def metering_of(
    quotas: ClientQuotas, key: ApiKey, client: tuple[str, str], size: int, time_ms: Callable[[], int]
) -> Metering | None:
    """The metering of a request with a body of `size` bytes; None where no limit applies to it.

    `client` is its user and client id, `time_ms` the broker's clock.
    """
    user, client_id = client
    is_timed = quotas.request_time.limits.find(user, client_id) is not None
    if not is_timed:
        kind = quotas.consumed if key in FETCHING else quotas.produced if key is ApiKey.PRODUCE else None
        limits = quotas.mutations.limits if key in MUTATING else None if kind is None else kind.limits
        if limits is None or limits.find(user, client_id) is None:
            return None
    return Metering(quotas, time_ms, client, size, is_timed=is_timed)


class Metering:
    """One request. `client` is its user and client id."""

    __slots__ = (
        "_client",
        "_loop_time",
        "_mutations",
        "_quotas",
        "_size",
        "_throttle_ms",
        "_time_ms",
        "is_exempt",
    )

    def __init__(
        self,
        quotas: ClientQuotas,
        time_ms: Callable[[], int],
        client: tuple[str, str],
        size: int,
        *,
        is_timed: bool,
    ) -> None:
        self._quotas = quotas
        self._time_ms = time_ms
        self._client = client
        self._size = size
        self._loop_time = LoopTime() if is_timed else None
        self._mutations: MutationShare | None = None
        self._throttle_ms: int | None = None
        self.is_exempt = False
        """Set by a handler that finds that the request is one of another broker."""

    # --- request time

    def around(self, steps: Steps[T]) -> Steps[T]:
        """The steps of the whole request, of which the time on the loop is counted."""
        if self._loop_time is None:
            return (yield from steps)
        result = yield from self._loop_time.around(steps)
        if not self.is_exempt:  # what encoding took counts for the client's next request
            self._quotas.request_time.record_only(*self._client, self._request_percent(), self._time_ms())
        return result

    def _request_percent(self) -> float:
        """What was spent since the last call."""
        return self._loop_time.take_ns() / NS_PER_PERCENT if self._loop_time is not None else 0.0

    # --- what handlers ask

    def fetch_bytes_max(self) -> int:
        """More than this in one response would always be too much."""
        most = self._quotas.consumed.value_max(*self._client)
        return INT_MAX if most is None else int(max(min(most, INT_MAX), 0))

    def throttle_fetch(self, size: int) -> bool:
        """Count the response of a consumer's fetch. True: the client has to wait, and gets nothing now."""
        now_ms = self._time_ms()
        of_time = self._count_time(now_ms)
        of_bytes = self._quotas.consumed.record(*self._client, size, now_ms)
        self._throttle_ms = max(of_bytes, of_time)
        if self._throttle_ms > 0:
            self._quotas.consumed.record_only(*self._client, -size, now_ms)
        return self._throttle_ms > 0

    def count_fetch(self, size: int) -> None:
        """Count records that are sent all the same; the client waits afterwards."""
        now_ms = self._time_ms()
        of_time = self._count_time(now_ms)
        self._throttle_ms = max(self._quotas.consumed.record(*self._client, size, now_ms), of_time)

    def mutations(self, *, is_strict: bool) -> MutationShare | None:
        """What the request may create and delete; the client waits for what it takes. None: without limit."""
        self._mutations = self.side_mutations(is_strict=is_strict)
        return self._mutations

    def side_mutations(self, *, is_strict: bool = False) -> MutationShare | None:
        """The same for what is created by the way: this request does not wait for it, the next ones do."""
        return self._quotas.mutations.share(*self._client, self._time_ms(), is_strict=is_strict)

    # --- the end

    def settle(self, key: ApiKey, request: Any, response: Any, failure: KafkaError | None) -> int:
        """Count a request whose response is known (None with acks=0). How long its connection must be muted, in ms."""
        if key in EXEMPT and (failure is None or failure.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            self.is_exempt = True
        if self.is_exempt:
            return 0
        throttle_ms = self._count(key, request) if self._throttle_ms is None else self._throttle_ms
        if throttle_ms > 0 and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        return throttle_ms

    def _count(self, key: ApiKey, request: Any) -> int:
        now_ms = self._time_ms()
        throttle_ms = 0
        if key is ApiKey.PRODUCE:
            throttle_ms = self._quotas.produced.record(*self._client, self._size, now_ms)
            if request.acks == 0:
                return throttle_ms
        elif self._mutations is not None:
            throttle_ms = self._mutations.throttle_ms(now_ms)
        return max(throttle_ms, self._count_time(now_ms))

    def _count_time(self, now_ms: int) -> int:
        if self._loop_time is None:
            return 0
        return self._quotas.request_time.record(*self._client, self._request_percent(), now_ms)
