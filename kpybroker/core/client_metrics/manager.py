"""The instances of clients that ask for subscriptions and push, as Kafka's ``ClientMetricsManager`` keeps them.

A client names its instance by an id, which the broker chooses in response to its first request. An instance is known
for as long as the connection lasts on which it was first seen, and until it has not asked for `EXPIRY_MS_MIN`, or for
three push intervals if that is longer. Everything here can be computed again: another broker, or this one after
forgetting it, has the same subscription id for the same client.

Rules. A client may ask for its subscriptions once an interval, and push once an interval and once after it has asked.
A change of any subscription makes all instances new: they may ask, and push, at once. At most `INSTANCES_MAX` are kept,
and each is charged to the client's owner; the one that was used least recently goes first.

Methods that are generators yield between slices, and must not run at the same time as each other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kpybroker.core.budget import StateBudget
from kpybroker.core.client_metrics.configs import Subscription
from kpybroker.core.client_metrics.subscriptions import Client, MergedSubscription, applying, merge, uuid_text
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.schema import ZERO_UUID

INSTANCES_MAX: Final = 16_384
EXPIRY_MS_MIN: Final = 60_000
INSTANCE_BYTES: Final = 4_096
"""What an instance takes at most, with its attributes, each of which has at most 249 characters."""

RESERVED_IDS: Final = frozenset({ZERO_UUID, (1).to_bytes(16)})
"""Ids that no instance can have."""
_CODECS: Final = frozenset(Codec)
_ASKS_AGAIN: Final = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
"""After these errors a client asks for its subscriptions at once."""


class Push(NamedTuple):
    """A PushTelemetry request, but for its metrics, of which only the size in bytes is looked at."""

    subscription_id: int
    terminating: bool
    compression_type: int
    size: int


@dataclass(slots=True)
class Counts:
    """Since the start, of all instances: what Kafka counts for its MBeans, most of it by instance."""

    unknown_subscriptions: int = 0
    """Pushes that named a subscription id which is not that of their instance."""
    throttled: int = 0
    exported: int = 0
    failed: int = 0


@dataclass(slots=True, eq=False)
class Instance:
    """A client instance under one version of all subscriptions. `connection_id`: where it was first seen."""

    instance_id: bytes
    client: Client
    connection_id: str
    version: int
    subscription: MergedSubscription
    subscription_id: int
    expires_ms: int = 0
    last_get_ms: int = 0
    last_push_ms: int = 0
    terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    def may_get(self, now_ms: int) -> bool:
        """Whether an interval has passed since its last request; if so, its last one is now."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.subscription.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """The same for a push. The first one after asking may follow at once: clients wait 0.5 to 1.5 intervals."""
        if self.last_get_ms <= self.last_push_ms and now_ms - self.last_push_ms < self.subscription.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class ClientMetricsManager:
    """Subscriptions, and instances from the least recently used one on. `random_id` makes 16 random bytes."""

    def __init__(self, max_bytes: int, random_id: Callable[[], bytes], budget: StateBudget) -> None:
        self.max_bytes = max_bytes
        self.counts = Counts()
        self._random_id = random_id
        self._budget = budget
        self._subscriptions: dict[str, Subscription] = {}
        self._version = 0
        self._merged: dict[tuple[str, ...], MergedSubscription] = {}
        self._instances: OrderedDict[bytes, Instance] = OrderedDict()
        self._of_connection: dict[str, bytes] = {}

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        """By name."""
        return self._subscriptions

    @property
    def instances(self) -> Mapping[bytes, Instance]:
        """By id."""
        return self._instances

    def subscribe(self, name: str, subscription: Subscription | None) -> None:
        """A subscription is set, changed, or, with None, removed."""
        if subscription is not None:
            self._subscriptions[name] = subscription
        elif self._subscriptions.pop(name, None) is None:
            return
        self._version += 1
        self._merged.clear()

    # --- requests

    def new_id(self) -> bytes:
        """An id that no instance has. As Kafka's, its text does not begin with a dash."""
        while True:
            found = self._random_id()
            if found not in RESERVED_IDS and found not in self._instances and not uuid_text(found).startswith("-"):
                return found

    def instance(
        self, instance_id: bytes, client: Client, connection_id: str, now_ms: int
    ) -> Generator[None, None, Instance]:
        """The instance of this id, a new one if there is none. THROTTLING_QUOTA_EXCEEDED where its owner has no room
        for it.
        """
        found = self._instances.get(instance_id)
        if found is None or found.version < self._version:
            found = yield from self._renewed(found, instance_id, client, connection_id)
        self._instances.move_to_end(instance_id)
        found.expires_ms = now_ms + max(EXPIRY_MS_MIN, 3 * found.subscription.interval_ms)
        return found

    def get(self, instance: Instance, now_ms: int) -> None:
        """A client asks for its subscriptions. Raises THROTTLING_QUOTA_EXCEEDED if that is too soon."""
        if not instance.may_get(now_ms) and instance.last_error not in _ASKS_AGAIN:
            raise self._too_soon(instance)
        instance.last_error = ErrorCode.NONE

    def push(self, instance: Instance, push: Push, now_ms: int) -> None:
        """A client pushes: raises the KafkaError of a push that is refused, in the order of Kafka's checks."""
        try:
            self._check_push(instance, push, now_ms)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.terminating = push.terminating

    def exported(self, instance: Instance) -> None:
        """What an instance pushed was received."""
        self.counts.exported += 1
        instance.last_error = ErrorCode.NONE

    def not_exported(self, instance: Instance) -> None:
        """What an instance pushed could not be read: INVALID_RECORD."""
        self.counts.failed += 1
        instance.last_error = ErrorCode.INVALID_RECORD

    # --- the end of instances

    def disconnected(self, connection_id: str) -> None:
        """A connection has ended, and with it the last instance that was first seen on it."""
        instance_id = self._of_connection.pop(connection_id, None)
        if instance_id is not None:
            self._forget(instance_id)

    def expire(self, now_ms: int) -> None:
        """Forget the instances that have not asked for too long."""
        for instance in [one for one in self._instances.values() if one.expires_ms <= now_ms]:
            self._forget(instance.instance_id)

    def _forget(self, instance_id: bytes) -> None:
        instance = self._instances.pop(instance_id, None)
        if instance is None:
            return
        self._budget.add(instance.client.owner, -INSTANCE_BYTES)
        if self._of_connection.get(instance.connection_id) == instance_id:
            del self._of_connection[instance.connection_id]

    # --- inside

    def _renewed(
        self, before: Instance | None, instance_id: bytes, client: Client, connection_id: str
    ) -> Generator[None, None, Instance]:
        """An instance under the subscriptions of now. It is the same client as before, whatever this request says."""
        if before is not None:
            client = before.client
        elif not self._budget.has_room(client.owner, INSTANCE_BYTES):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "There is no room for one more client instance")
        version, subscriptions = self._version, dict(self._subscriptions)
        names = yield from applying(subscriptions.items(), client.attributes(instance_id))
        merged = self._merged.get(tuple(names)) if version == self._version else None
        if merged is None:
            merged = merge(subscriptions[name] for name in names)
            if version == self._version:
                self._merged[tuple(names)] = merged
        subscription_id = merged.subscription_id(instance_id)
        instance = Instance(instance_id, client, connection_id, version, merged, subscription_id)
        self._keep(instance)
        return instance

    def _keep(self, instance: Instance) -> None:
        """In the place of one of the same id, which may have gone since, or as a new one."""
        if instance.instance_id not in self._instances:
            self._budget.add(instance.client.owner, INSTANCE_BYTES)
        self._instances[instance.instance_id] = instance
        self._of_connection[instance.connection_id] = instance.instance_id
        if len(self._instances) > INSTANCES_MAX:
            self._forget(next(iter(self._instances)))

    def _too_soon(self, instance: Instance) -> KafkaError:
        self.counts.throttled += 1
        text = f"Request from the client [{uuid_text(instance.instance_id)}] arrived before the next push interval time"
        return KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, text)

    def _check_push(self, instance: Instance, push: Push, now_ms: int) -> None:
        who = f"[{uuid_text(instance.instance_id)}]"
        if instance.terminating:
            text = f"Client {who} pushed its last metrics before, and no request is accepted after that"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
        if not instance.may_push(now_ms) and not push.terminating:
            raise self._too_soon(instance)
        if push.subscription_id != instance.subscription_id:
            self.counts.unknown_subscriptions += 1
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, f"Unknown client subscription id for the client {who}")
        if push.compression_type not in _CODECS:
            text = f"Unknown compression type [{push.compression_type}] in a push of {who}"
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, text)
        if push.size > self.max_bytes:
            text = f"A push of {who} is larger than the maximum allowed size [{self.max_bytes}]"
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, text)
