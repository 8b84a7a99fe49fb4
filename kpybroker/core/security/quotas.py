"""Client quotas: which limit applies to a user and client id, what they have used, how long they must wait.

Kafka's `ClientQuotaManager`, ``ClientRequestQuotaManager``, ``ControllerMutationQuotaManager``, ``QuotaUtils`` and
`TokenBucket`, to the digit. Rules:

- A limit belongs to an entity: a user, a client id, or both, each by name or as the default. The first of eight levels
  that has a limit applies (`Limits.find`), and all connections that share its owner share its use.
- Bytes and request time are rates over samples (`core.rate`). What exceeds the limit is counted, and the client waits
  as long as it takes to bring the rate back.
- Controller mutations are tokens of a bucket (KIP-599): a strict request is refused while the bucket is below zero, and
  may take more than there is while it is not.
- At most `OWNERS_MAX` owners are remembered, each for an hour after its last use; the oldest is forgotten first.

Not here: reading quotas from the tree (`broker.cluster`), and muting connections (`broker.requests`).
"""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from kpybroker.core.rate import Rate

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

CLIENT_QUOTA_KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
"""What users and client ids may have."""

INTEGER_KEYS: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, CONNECTION_CREATION_RATE})
"""Keys whose values are whole numbers; the others have fractions."""

OWNERS_MAX: Final = 10_000
NAME_MAX: Final = 256
"""Characters of an owner's names that are remembered; a client id may have 32 767."""
FORGOTTEN_AFTER_MS: Final = 3_600_000
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


class Default(enum.Enum):
    """The name of an entity that stands for every one without a limit of its own."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT
Name = str | Default


class Entity(NamedTuple):
    """Who a limit is for; None where it does not depend on that."""

    user: Name | None
    client_id: Name | None


class Owner(NamedTuple):
    """Who shares one use of a quota: "" where the user or the client id makes no difference."""

    user: str
    client_id: str


class Limits:
    """The limits of one kind of quota."""

    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits: dict[Entity, float] = {}

    def __len__(self) -> int:
        return len(self._limits)

    def set(self, entity: Entity, limit: float | None) -> None:
        """Set, change or (None) remove one."""
        if limit is None:
            self._limits.pop(entity, None)
        else:
            self._limits[entity] = limit

    def find(self, user: str, client_id: str) -> tuple[Owner, float] | None:
        """The limit for a client and who shares it; None: no limit.

        A client without an id is limited as a user only, as in Kafka.
        """
        limits = self._limits
        own, users, clients = Owner(user, client_id), Owner(user, ""), Owner("", client_id)
        levels: tuple[tuple[Owner, Entity], ...] = ((users, Entity(user, None)), (users, Entity(DEFAULT, None)))
        if client_id:
            levels = (
                (own, Entity(user, client_id)),
                (own, Entity(user, DEFAULT)),
                levels[0],
                (own, Entity(DEFAULT, client_id)),
                (own, Entity(DEFAULT, DEFAULT)),
                levels[1],
                (clients, Entity(None, client_id)),
                (clients, Entity(None, DEFAULT)),
            )
        for owner, entity in levels:
            limit = limits.get(entity)
            if limit is not None:
                return owner, limit
        return None


T = TypeVar("T")


class Uses(Generic[T]):
    """What each owner has used; the least recently used is first."""

    __slots__ = ("_make", "_uses")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._uses: dict[Owner, tuple[T, int]] = {}

    def __len__(self) -> int:
        return len(self._uses)

    def of(self, owner: Owner, now_ms: int) -> T:
        """The use of one owner, which is remembered from now on."""
        owner = _short(owner)
        known = self._uses.pop(owner, None)
        if known is None or now_ms - known[1] >= FORGOTTEN_AFTER_MS:
            self._forget(now_ms)
            known = (self._make(), now_ms)
        self._uses[owner] = (known[0], now_ms)
        return known[0]

    def _forget(self, now_ms: int) -> None:
        """Two at most for each new one: so they get fewer without a pause for all of them."""
        for _ in range(2):
            if not self._uses:
                return
            oldest = next(iter(self._uses))
            is_over = now_ms - self._uses[oldest][1] >= FORGOTTEN_AFTER_MS
            if not is_over and len(self._uses) < OWNERS_MAX:
                return
            del self._uses[oldest]


def _short(owner: Owner) -> Owner:
    """The owner, with a digest in the place of names that are too long to be remembered by the thousands."""
    user, client_id = owner
    if len(user) <= NAME_MAX and len(client_id) <= NAME_MAX:
        return owner
    return Owner(_digest(user), _digest(client_id))


def _digest(name: str) -> str:
    if len(name) <= NAME_MAX:
        return name
    return f"{name[:NAME_MAX]}#{hashlib.blake2b(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


class RateQuota:
    """A quota on an amount a second: bytes, or percent of a second of request time.

    With `throttle_ms_max` a client waits no longer than that for one request.
    """

    __slots__ = ("_rates", "_throttle_ms_max", "_window_ms", "_windows", "limits")

    def __init__(self, windows: int, window_ms: int, throttle_ms_max: int | None = None) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._throttle_ms_max = throttle_ms_max
        self._rates = Uses(lambda: Rate(windows, window_ms))
        self.limits = Limits()

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Count `value`. Returns the milliseconds that the client must wait."""
        found = self.limits.find(user, client_id)
        if found is None:
            return 0
        owner, limit = found
        rate = self._rates.of(owner, now_ms)
        rate.record(value, now_ms)
        return throttle_ms(rate, limit, now_ms, self._throttle_ms_max)

    def record_only(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Count `value` (or take it back, if it is negative), and let the client wait for its next request only."""
        found = self.limits.find(user, client_id)
        if found is not None:
            self._rates.of(found[0], now_ms).record(value, now_ms)

    def value_max(self, user: str, client_id: str) -> float | None:
        """More than this at once always has to wait, even after a long rest; None: without limit."""
        found = self.limits.find(user, client_id)
        return None if found is None else found[1] * (self._windows - 1) * self._window_ms / 1000


def throttle_ms(rate: Rate, limit: float, now_ms: int, longest_ms: int | None = None) -> int:
    """How long nothing may be counted until `rate` is down at `limit`.

    As in Kafka a limit of zero makes no one wait, except where there is a longest wait.
    """
    measured = rate.measure(now_ms)
    if not measured > limit:
        return 0
    exact = (measured - limit) / limit * rate.elapsed_ms(now_ms) if limit else math.inf
    if longest_ms is not None:
        return min(_rounded(exact), longest_ms) if exact < LONG_MAX else longest_ms
    if exact >= LONG_MAX:
        return 0  # the largest Java long, as an int, is -1
    return max(min(_rounded(exact), INT_MAX), 0)


def _rounded(value: float) -> int:
    """Java's ``Math.round``."""
    return math.floor(value + 0.5)


class TokenBucket:
    """Tokens that come back at a steady rate. The first use finds it full."""

    __slots__ = ("_last_ms", "_tokens")

    def __init__(self) -> None:
        self._tokens = 0.0
        self._last_ms = 0

    def measure(self, rate: float, burst: float, now_ms: int) -> float:
        """The tokens that are there, of at most `burst`; negative after a request took more."""
        self._tokens = min(burst, self._tokens + rate * (now_ms - self._last_ms) / 1000)
        self._last_ms = now_ms
        return self._tokens

    def take(self, count: float, rate: float, burst: float, now_ms: int) -> None:
        """Take tokens, also more than there are."""
        self._tokens = min(burst, self.measure(rate, burst, now_ms) - count)


class MutationQuota:
    """A quota on created and deleted partitions, by token bucket."""

    __slots__ = ("_buckets", "_seconds", "limits")

    def __init__(self, windows: int, window_ms: int) -> None:
        self._seconds = windows * window_ms / 1000
        self._buckets = Uses(TokenBucket)
        self.limits = Limits()

    def share(self, user: str, client_id: str, now_ms: int, *, is_strict: bool) -> MutationShare | None:
        """What one request may use; None: without limit."""
        found = self.limits.find(user, client_id)
        if found is None:
            return None
        owner, limit = found
        return MutationShare(self._buckets.of(owner, now_ms), limit, self._seconds * limit, is_strict=is_strict)


class MutationShare:
    """The quota of one request. A strict one is refused when there is nothing left, any other one only waits."""

    __slots__ = ("_bucket", "_burst", "_is_strict", "_limit", "_throttle_ms", "_throttled_ms")

    def __init__(self, bucket: TokenBucket, limit: float, burst: float, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self._burst = burst
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._throttled_ms = 0

    def take(self, partitions: int, now_ms: int) -> bool:
        """Use as many; False: refused."""
        bucket, limit, burst = self._bucket, self._limit, self._burst
        if not self._is_strict:
            bucket.take(partitions, limit, burst, now_ms)
        left = bucket.measure(limit, burst, now_ms)
        if left < 0:
            self._throttle_ms = _rounded(-left / limit * 1000) if limit else INT_MAX
            self._throttled_ms = now_ms
        elif self._is_strict:
            bucket.take(partitions, limit, burst, now_ms)
        return left >= 0 or not self._is_strict

    def throttle_ms(self, now_ms: int) -> int:
        """How long the client has to wait from now on."""
        return max(0, min(self._throttle_ms - (now_ms - self._throttled_ms), INT_MAX))


class ClientQuotas:
    """All quotas of users and client ids in one broker. Windows in milliseconds."""

    __slots__ = ("consumed", "mutations", "produced", "request_time")

    def __init__(self, windows: int, window_ms: int, mutation_windows: int, mutation_window_ms: int) -> None:
        self.produced = RateQuota(windows, window_ms)
        self.consumed = RateQuota(windows, window_ms)
        self.request_time = RateQuota(windows, window_ms, throttle_ms_max=window_ms)
        self.mutations = MutationQuota(mutation_windows, mutation_window_ms)

    def set(self, entity: Entity, limits: dict[str, float]) -> None:
        """Replace the limits of one entity; those that `limits` does not name are removed."""
        self.produced.limits.set(entity, limits.get(PRODUCER_BYTE_RATE))
        self.consumed.limits.set(entity, limits.get(CONSUMER_BYTE_RATE))
        self.request_time.limits.set(entity, limits.get(REQUEST_PERCENTAGE))
        self.mutations.limits.set(entity, limits.get(CONTROLLER_MUTATION_RATE))

    def __len__(self) -> int:
        """How many limits there are."""
        kinds = (self.produced, self.consumed, self.request_time, self.mutations)
        return sum(len(kind.limits) for kind in kinds)
