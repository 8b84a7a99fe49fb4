"""A full budget refuses what is new of classic members of a consumer group, and no one that is there."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.core.budget import StateBudget, StateLimits
from kpybroker.core.consumer_group.values import ConsumerHeartbeat
from kpybroker.core.group.room import needed_bytes
from kpybroker.core.group.values import Heartbeat, Protocols, Sync
from kpybroker.wire.errors import ErrorCode
from tests.core.consumer_group.harness import ConsumerHarness, classic_subscription
from tests.core.group.harness import OWNER, charged_bytes, join_of, subscription

LIMIT = 1_000_000
TIMEOUTS = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}
RANGE: Protocols = (("range", subscription("t")),)
LARGER: Protocols = (("range", subscription("t", "u")), ("roundrobin", subscription("t", "u")))


class Bounded(ConsumerHarness):
    """A consumer group with a member of the new protocol and a classic one that is static."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = StateBudget(StateLimits(address=LIMIT))
        self.machine = self.new_machine()
        self._tell_topics()
        self.perform("a: hb g id=a epoch=0")
        self.perform("b: join g client=b instance=i")

    def fill(self) -> None:
        self.budget.add(OWNER, LIMIT - self.budget.held(OWNER))

    def response(self, request: Any) -> Any:
        ticket = f"r{len(self.asked)}"
        self.ask(ticket, request)
        return self.replies[ticket]

    def join(self, member_id: str, protocols: Protocols, instance_id: str | None = None) -> Any:
        new_id = "" if member_id else "new"
        return self.response(join_of("g", member_id, instance_id, protocols, 3, new_member_id=new_id, **TIMEOUTS))


@pytest.fixture
def bounded() -> Bounded:
    return Bounded()


def test_a_member_that_asks_for_the_same_is_not_refused(bounded: Bounded) -> None:
    bounded.fill()
    assert bounded.join("i-1", RANGE, "i").error is ErrorCode.NONE
    assert bounded.response(Sync("g", 3, "i-1", "i", None, None, {})).error is ErrorCode.NONE
    assert bounded.response(Heartbeat("g", 3, "i-1", "i")) is ErrorCode.NONE
    assert bounded.join("", RANGE, "i").error is ErrorCode.NONE  # its next instance


def test_what_grows_is_refused(bounded: Bounded) -> None:
    bounded.fill()
    assert bounded.join("", RANGE).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bounded.join("i-1", LARGER, "i").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bounded.join("i-1", RANGE, "i").error is ErrorCode.NONE


@pytest.mark.parametrize(
    "protocols", [RANGE, LARGER, (("range", classic_subscription(["t", "u"], {"t": range(100)})),)]
)
def test_no_more_is_charged_for_a_member_than_was_asked_for(bounded: Bounded, protocols: Protocols) -> None:
    """But what it is assigned, which is never refused."""
    request = join_of("g", "x", None, protocols, 3, **TIMEOUTS)
    needed = needed_bytes(bounded.machine.groups["g"], request)
    before = bounded.budget.total
    bounded.group_config = bounded.group_config.__class__(assignment_interval_ms=1_000_000)
    assert bounded.response(request).error is ErrorCode.NONE
    assert bounded.budget.total - before == needed


def test_both_migrations_charge_each_owner_for_its_members(bounded: Bounded) -> None:
    bounded.response(ConsumerHeartbeat("g", "a", -1))
    assert bounded.machine.groups["g"].consumer is None
    assert bounded.budget.held(OWNER) == charged_bytes(bounded.machine) > 0
    bounded.perform("c: hb g id=c epoch=0")
    assert bounded.machine.groups["g"].consumer is not None
    assert bounded.budget.held(OWNER) == charged_bytes(bounded.machine) > 0
