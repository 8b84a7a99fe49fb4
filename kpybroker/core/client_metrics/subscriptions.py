"""Which subscriptions apply to a client, and what they ask for together."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Generator, Iterable, Mapping
from typing import Final, NamedTuple

from kpybroker.config.hash_order import hash_set_order
from kpybroker.core.budget import Owner
from kpybroker.core.client_metrics.configs import ALL_METRICS, INTERVAL_MS_DEFAULT, VALUE_LENGTH_MAX, Subscription
from kpybroker.wire.crc import crc32c
from kpybroker.wire.yield_budget import WorkBudget

_HALF: Final = 8
_INT_MASK: Final = 0xFFFFFFFF


class Client(NamedTuple):
    """Who asks, as of the first request of its instance. `owner` is charged for what is kept of it."""

    client_id: str | None
    software_name: str
    software_version: str
    address: str
    port: int
    owner: Owner

    def attributes(self, instance_id: bytes) -> dict[str, str]:
        """What patterns are held against. Left out is what no pattern matches: what is null, or too long."""
        found = {
            "client_instance_id": uuid_text(instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": str(self.port),
        }
        return {name: value for name, value in found.items() if value is not None and len(value) <= VALUE_LENGTH_MAX}


class MergedSubscription(NamedTuple):
    """What is asked of a client: prefixes of metric names in the order of Kafka's hash set, and the interval of pushes.

    Without a subscription that applies there are no metrics, and the client asks again after the default interval.
    """

    metrics: tuple[str, ...]
    interval_ms: int

    def subscription_id(self, instance_id: bytes) -> int:
        """Kafka's: a CRC-32C of the metrics and the interval, XORed with the hash code of the instance id; signed."""
        text = f"[{', '.join(self.metrics)}]{self.interval_ms}"
        found = crc32c(text.encode()) ^ _uuid_hash(instance_id)
        return found - (1 << 32) if found >> 31 else found


NOTHING: Final = MergedSubscription((), INTERVAL_MS_DEFAULT)


def applying(
    subscriptions: Iterable[tuple[str, Subscription]], attributes: Mapping[str, str]
) -> Generator[None, None, list[str]]:
    """The names of the subscriptions that apply to a client with these attributes. Yields between slices."""
    budget = WorkBudget()
    found = []
    for name, subscription in subscriptions:
        applies = True
        for attribute, pattern in subscription.match.items():
            value = attributes.get(attribute)
            applies = value is not None and (yield from pattern.matching(value, budget))
            if budget.is_spent():
                yield
            if not applies:
                break
        if applies:
            found.append(name)
        if budget.is_spent():
            yield
    return found


def merge(subscriptions: Iterable[Subscription]) -> MergedSubscription:
    """What subscriptions ask for together: all their metrics, at the shortest of the intervals, and of the default."""
    metrics: dict[str, None] = {}
    interval_ms = INTERVAL_MS_DEFAULT
    for subscription in subscriptions:
        metrics.update(dict.fromkeys(subscription.metrics))
        interval_ms = min(interval_ms, subscription.interval_ms)
    names = [ALL_METRICS] if ALL_METRICS in metrics else hash_set_order(list(metrics))
    return MergedSubscription(tuple(names), interval_ms)


def uuid_text(uuid: bytes) -> str:
    """As Kafka's ``Uuid.toString``."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def _uuid_hash(uuid: bytes) -> int:
    """Kafka's ``Uuid.hashCode``, unsigned."""
    both = int.from_bytes(uuid[:_HALF]) ^ int.from_bytes(uuid[_HALF:])
    return (both >> 32 ^ both) & _INT_MASK
