"""The last value of each series of each client, in bounded memory.

Rules
- What was added is summed up: Kafka always asks for deltas. A count that was pushed whole is kept as it is.
- A gauge that is not in the newest push is gone, as that of a partition which is not assigned any more. A count stays:
  clients leave out those to which nothing was added.
- A client is forgotten when it has not pushed for three of its intervals, as Kafka forgets its subscription; one that
  said that it ends, after `ENDED_MS`: so the last values can still be read.
- `CLIENTS_MAX`, and `SIZE_MAX` bytes in all: where there are more clients, those that pushed longest ago go first. A
  client has `SERIES_MAX` and `CLIENT_SIZE_MAX`: what its newest push has comes before what older ones had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from kpybroker.metrics.clients.series import Client, Distribution, Labels, Sample, Series, SeriesKind, Value, finite

CLIENTS_MAX: Final = 1_000
SERIES_MAX: Final = 2_000
SIZE_MAX: Final = 32 << 20
CLIENT_SIZE_MAX: Final = 2 << 20
KEPT_MS_MIN: Final = 60_000
ENDED_MS: Final = 300_000
SERIES_BYTES: Final = 500
"""What a series takes without its texts."""


@dataclass(frozen=True, slots=True)
class Push:
    """What is known of a push besides its metrics. `interval_ms`: when the next one is due."""

    instance_id: bytes
    client_id: str
    software_name: str
    software_version: str
    address: str
    interval_ms: int
    is_last: bool


@dataclass(slots=True)
class _Kept:
    push: Push
    resource: Labels
    since_ms: int
    pushed_ms: int
    pushes: int = 0
    left_out: int = 0
    series: dict[tuple[str, Labels], Series] = field(default_factory=dict)
    size: int = 0

    def ends_at(self) -> int:
        """When it is forgotten."""
        kept_ms = ENDED_MS if self.push.is_last else max(KEPT_MS_MIN, 3 * self.push.interval_ms)
        return self.pushed_ms + kept_ms


class ClientTable:
    """Reads and changes take the time, `now_ms`."""

    def __init__(self) -> None:
        self._clients: dict[bytes, _Kept] = {}
        """Those that pushed longest ago first."""
        self._size = 0

    def push(self, push: Push, resource: Labels, samples: Iterable[Sample], left_out: int, now_ms: int) -> Client:
        """Take a push; the client without its series."""
        kept = self._clients.pop(push.instance_id, None)
        if kept is None or now_ms > kept.ends_at():
            if kept is not None:
                self._size -= kept.size
            kept = _Kept(push, resource, now_ms, now_ms)
        self._size -= kept.size
        kept.push, kept.resource, kept.pushed_ms, kept.pushes = push, resource, now_ms, kept.pushes + 1
        kept.left_out = left_out + _merge(kept, samples)
        self._size += kept.size
        self._clients[push.instance_id] = kept
        if self._is_full():
            self._forget(now_ms)
            while self._is_full() and len(self._clients) > 1:
                self._drop(next(iter(self._clients)))
        return _client(kept, ())

    def clients(self, now_ms: int) -> list[Client]:
        """All clients, without their series, those that pushed longest ago first."""
        self._forget(now_ms)
        return [_client(kept, ()) for kept in self._clients.values()]

    def series(self, now_ms: int, client_id: str | None = None, name: str | None = None) -> Iterator[Client]:
        """Clients with their series: those of this client id, and the series of this name."""
        self._forget(now_ms)
        for kept in list(self._clients.values()):
            if client_id in (None, kept.push.client_id):
                found = [one for one in kept.series.values() if name in (None, one.name)]
                yield _client(kept, sorted(found, key=lambda one: (one.name, one.labels)))

    def _is_full(self) -> bool:
        return len(self._clients) > CLIENTS_MAX or self._size > SIZE_MAX

    def _forget(self, now_ms: int) -> None:
        for instance_id in [one for one, kept in self._clients.items() if now_ms > kept.ends_at()]:
            self._drop(instance_id)

    def _drop(self, instance_id: bytes) -> None:
        self._size -= self._clients.pop(instance_id).size


def _client(kept: _Kept, series: Iterable[Series]) -> Client:
    push = kept.push
    of_push = (push.instance_id, push.client_id, push.software_name, push.software_version, push.address)
    times = kept.since_ms, kept.pushed_ms, kept.pushes
    return Client(*of_push, kept.resource, *times, push.is_last, kept.left_out, tuple(series))


def _merge(kept: _Kept, samples: Iterable[Sample]) -> int:
    """Take the samples of a push; how many there was no room for."""
    before, merged = kept.series, _Merged()
    left_out = 0
    for sample in samples:
        key = sample.series.name, sample.series.labels
        added = _added(before.get(key), sample, kept.since_ms) if sample.is_delta else sample.series
        left_out += not merged.take(key, added)
    for key, series in before.items():
        if key not in merged.series and series.kind is not SeriesKind.GAUGE:
            merged.take(key, series)
    kept.series, kept.size = merged.series, merged.size
    return left_out


@dataclass(slots=True)
class _Merged:
    """Series within the bounds of a client. Of one that is pushed twice the first is kept."""

    series: dict[tuple[str, Labels], Series] = field(default_factory=dict)
    size: int = 0

    def take(self, key: tuple[str, Labels], series: Series) -> bool:
        """Whether there was room, and no such series."""
        size = self.size + _size(series)
        if key in self.series or len(self.series) >= SERIES_MAX or size > CLIENT_SIZE_MAX:
            return False
        self.series[key], self.size = series, size
        return True


def _added(old: Series | None, sample: Sample, since_ms: int) -> Series:
    """What was counted before, and what the sample adds."""
    new = sample.series
    before = old.value if old is not None and old.kind is new.kind else None
    return replace(new, value=_sum(before, new.value), start_ms=old.start_ms if old is not None else since_ms)


def _sum(before: Value | None, added: Value) -> Value:
    if isinstance(added, Distribution):
        return before.plus(added) if isinstance(before, Distribution) else replace(added, sum=finite(added.sum))
    return finite(added) + (before if isinstance(before, int | float) else 0)


def _size(series: Series) -> int:
    texts = len(series.name) + len(series.description) + sum(len(name) + len(text) for name, text in series.labels)
    value = series.value
    return SERIES_BYTES + texts + (64 * len(value.values) if isinstance(value, Distribution) else 0)
