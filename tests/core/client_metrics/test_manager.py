"""Instances of clients: what they are asked for, how often they may ask and push, and when they are forgotten."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from kpybroker.core.budget import Owner, StateBudget, StateLimits
from kpybroker.core.client_metrics import manager as module
from kpybroker.core.client_metrics.configs import INTERVAL_MS_DEFAULT, parse
from kpybroker.core.client_metrics.manager import INSTANCE_BYTES, ClientMetricsManager, Counts, Instance, Push
from kpybroker.core.client_metrics.subscriptions import Client
from kpybroker.wire.errors import ErrorCode, KafkaError

OWNER = Owner(address="10.0.0.7")
ID, OTHER = b"a" * 16, b"b" * 16
NOW_MS = 1_700_000_000_000
INTERVAL_MS = 1000
MAX_BYTES = 100


def result(steps: Generator[None, None, Any]) -> Any:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


class Clients:
    """A manager, and clients that talk to it."""

    def __init__(self, limits: StateLimits | None = None, interval_ms: int | None = INTERVAL_MS) -> None:
        self.ids = iter([bytes(16), (1).to_bytes(16), b"\xf8" + bytes(15), ID, OTHER])
        self.budget = StateBudget(limits or StateLimits())
        self.manager = ClientMetricsManager(MAX_BYTES, lambda: next(self.ids), self.budget)
        if interval_ms is not None:
            self.subscribe("s", metrics="m.", interval_ms=str(interval_ms))

    def subscribe(self, name: str, **props: str) -> None:
        props = {key.replace("_ms", ".ms"): value for key, value in props.items()}
        self.manager.subscribe(name, parse(name, props) if props else None)

    def instance(
        self, at_ms: int = 0, instance_id: bytes = ID, client_id: str = "app", connection: str = "1"
    ) -> Instance:
        client = Client(client_id, "java", "4.3.1", "10.0.0.7", 40_001, OWNER)
        found: Instance = result(self.manager.instance(instance_id, client, connection, NOW_MS + at_ms))
        return found

    def get(self, at_ms: int = 0, **client: Any) -> Instance | ErrorCode:
        instance = self.instance(at_ms, **client)
        try:
            self.manager.get(instance, NOW_MS + at_ms)
        except KafkaError as error:
            return error.code
        return instance

    def push(self, at_ms: int = 0, **fields: Any) -> ErrorCode:
        """A push with the right subscription id unless `fields` say another."""
        client = {name: fields.pop(name) for name in ("instance_id", "connection") if name in fields}
        instance = self.instance(at_ms, **client)
        push = {"subscription_id": instance.subscription_id, "terminating": False, "compression_type": 0, "size": 1}
        try:
            self.manager.push(instance, Push(**{**push, **fields}), NOW_MS + at_ms)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE


THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_new_id_is_neither_reserved_nor_begins_with_a_dash() -> None:
    assert Clients().manager.new_id() == ID


def test_a_client_asks_once_an_interval() -> None:
    clients = Clients()
    first = clients.get()
    assert isinstance(first, Instance)
    assert (first.subscription.metrics, first.subscription.interval_ms) == (("m.",), INTERVAL_MS)
    assert clients.get(INTERVAL_MS - 1) == THROTTLED
    assert clients.get(INTERVAL_MS) is first
    assert clients.manager.counts.throttled == 1


def test_a_client_pushes_at_once_after_asking_and_then_once_an_interval() -> None:
    clients = Clients()
    clients.get()
    assert [clients.push(at) for at in (1, 2, INTERVAL_MS, INTERVAL_MS + 1)] == [
        *(ErrorCode.NONE, THROTTLED, THROTTLED, ErrorCode.NONE)
    ]
    assert clients.get(INTERVAL_MS + 2) == THROTTLED  # a push counts for asking too


def test_an_instance_that_no_one_knows_may_push() -> None:
    # It has its subscription from another broker.
    assert Clients().push() == ErrorCode.NONE


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"subscription_id": 7}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"size": MAX_BYTES + 1}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"size": MAX_BYTES}, ErrorCode.NONE),
        # The first of several that is wrong counts.
        ({"subscription_id": 7, "compression_type": 5, "size": 999}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5, "size": 999}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_a_push_is_checked(fields: dict[str, int], code: ErrorCode) -> None:
    clients = Clients()
    assert clients.push(**fields) == code
    assert clients.manager.counts.unknown_subscriptions == (code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID)


@pytest.mark.parametrize(
    ("fields", "again"),
    [({"subscription_id": 7}, True), ({"compression_type": 5}, True), ({"size": MAX_BYTES + 1}, False)],
)
def test_after_errors_that_asking_again_helps_with_a_client_may_ask_at_once(
    fields: dict[str, int], again: bool
) -> None:
    clients = Clients()
    clients.get()
    clients.push(1, **fields)
    assert (clients.get(2) == THROTTLED) is not again
    assert clients.get(3) == THROTTLED


def test_the_last_push_may_come_early_and_none_after_it() -> None:
    clients = Clients()
    clients.get()
    assert clients.push(1) == ErrorCode.NONE
    assert clients.push(2, terminating=True) == ErrorCode.NONE
    assert clients.push(3, terminating=True) == ErrorCode.INVALID_REQUEST
    assert clients.push(2 * INTERVAL_MS, terminating=False) == ErrorCode.INVALID_REQUEST
    # as in Kafka: the refused push was not the last one, so the next is taken
    assert clients.push(3 * INTERVAL_MS) == ErrorCode.NONE


def test_a_change_of_any_subscription_makes_instances_new() -> None:
    clients = Clients()
    before = clients.get()
    assert isinstance(before, Instance)
    clients.push(1)
    clients.push(2)
    clients.subscribe("other", metrics="n.", match="client_id=no one")
    assert clients.push(3, subscription_id=before.subscription_id) == ErrorCode.NONE  # nothing has changed for this one
    clients.subscribe("s", metrics="m.,o.", interval_ms="2000")
    assert clients.push(4, subscription_id=before.subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    after = clients.get(5)
    assert isinstance(after, Instance)
    assert (sorted(after.subscription.metrics), after.subscription.interval_ms) == (["m.", "o."], 2000)
    assert after is not before


def test_an_instance_stays_the_client_that_it_was_first() -> None:
    clients = Clients()
    clients.subscribe("s", metrics="m.", match="client_id=app")
    clients.get()
    clients.subscribe("t", metrics="n.")
    assert set(clients.instance(client_id="another").subscription.metrics) == {"m.", "n."}


def test_a_subscription_that_is_removed_counts_no_more() -> None:
    clients = Clients()
    clients.get()
    clients.subscribe("s")
    assert clients.manager.subscriptions == {}
    found = clients.get(1)
    assert isinstance(found, Instance)
    assert found.subscription == ((), INTERVAL_MS_DEFAULT)
    clients.subscribe("s")  # there was none: nothing has changed
    assert clients.get(2) == THROTTLED


# --- the end of instances


def test_an_instance_goes_with_the_connection_on_which_it_was_first_seen() -> None:
    clients = Clients()
    clients.get(connection="1")
    clients.get(2000, connection="2")
    clients.manager.disconnected("2")
    assert list(clients.manager.instances) == [ID]
    clients.manager.disconnected("1")
    clients.manager.disconnected("1")
    assert (dict(clients.manager.instances), clients.budget.total) == ({}, 0)


@pytest.mark.parametrize(("interval_ms", "lasts_ms"), [(100, 60_000), (20_000, 60_000), (30_000, 90_000)])
def test_an_instance_that_does_not_ask_is_forgotten(interval_ms: int, lasts_ms: int) -> None:
    clients = Clients(interval_ms=interval_ms)
    clients.get()
    clients.push(10)
    clients.manager.expire(NOW_MS + 10 + lasts_ms - 1)
    assert list(clients.manager.instances) == [ID]
    clients.manager.expire(NOW_MS + 10 + lasts_ms)
    assert (dict(clients.manager.instances), clients.budget.total) == ({}, 0)
    clients.manager.disconnected("1")


def test_the_instance_that_was_used_least_recently_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INSTANCES_MAX", 2)
    clients = Clients()
    third = b"c" * 16
    for at, instance_id in enumerate((ID, OTHER, ID, third)):
        clients.instance(at, instance_id=instance_id, connection=instance_id.hex())
    assert list(clients.manager.instances) == [ID, third]
    assert clients.budget.total == 2 * INSTANCE_BYTES
    clients.manager.disconnected(OTHER.hex())
    assert list(clients.manager.instances) == [ID, third]


def test_an_owner_has_as_many_instances_as_its_budget_allows() -> None:
    clients = Clients(StateLimits(address=INSTANCE_BYTES))
    clients.get()
    with pytest.raises(KafkaError) as refused:
        clients.instance(instance_id=OTHER)
    assert refused.value.code == THROTTLED
    clients.subscribe("t", metrics="n.")
    assert isinstance(clients.get(1), Instance)  # it is renewed in its own place
    clients.manager.disconnected("1")
    assert isinstance(clients.get(2, instance_id=OTHER), Instance)


def test_pushes_are_counted() -> None:
    clients = Clients()
    instance = clients.instance()
    clients.manager.exported(instance)
    clients.manager.exported(instance)
    clients.manager.not_exported(instance)
    assert clients.manager.counts == Counts(exported=2, failed=1)
    assert instance.last_error == ErrorCode.INVALID_RECORD
