"""Members that go at one time: in batches that the log takes, until none is left."""

from __future__ import annotations

import pytest

from kpybroker.core.consumer_group.records import GroupEpochRecord, MemberRecord
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import RecordVersions, encode_record
from kpybroker.core.machine import Now
from kpybroker.core.modern_group import leaving
from kpybroker.core.modern_group.leaving import FENCED_AT_ONCE
from tests.core.consumer_group.harness import ConsumerHarness
from tests.core.consumer_group.test_heartbeat import settled

MAX_MESSAGE_BYTES = 1_048_588
"""The default of `max.message.bytes`."""


def expired_at_once(machine: GroupMachine, now: Now) -> list[int]:
    """How many members each batch removes, until there are none."""
    consumer = machine.groups["g"].consumer
    assert consumer is not None
    removed = []
    while not consumer.is_empty:
        outcome = machine.expire(now)
        (write,) = outcome.writes
        encoded = [encode_record(record, RecordVersions()) for record in write.records]
        assert sum(len(key) + len(value or b"") + 20 for key, value in encoded) < MAX_MESSAGE_BYTES / 4
        removed.append(sum(isinstance(record, MemberRecord) for record in write.records))
        assert isinstance(write.records[-1], GroupEpochRecord)
        for record in write.records:
            machine.replay(record, 1_000_000)
    return removed


def test_ten_thousand_sessions_end_at_one_time() -> None:
    """All in one batch are more than the log takes, and none would ever be removed."""
    machine = settled(10_000)
    assert expired_at_once(machine, Now(1, 100.0)) == [FENCED_AT_ONCE] * (10_000 // FENCED_AT_ONCE)
    consumer = machine.groups["g"].consumer
    assert consumer is not None
    assert (consumer.targets, consumer.holders, consumer.live) == ({}, {}, {})


def test_those_that_must_wait_are_due_at_once_and_may_still_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "FENCED_AT_ONCE", 1)
    harness = ConsumerHarness()
    for name in ("a", "b", "c"):
        harness.perform(f"join-{name}: hb g id={name} epoch=0")
    now = Now(1_050_000, 50.0)
    harness.run(harness.machine.expire(now))
    consumer = harness.machine.groups["g"].consumer
    assert consumer is not None
    assert (list(consumer.members), harness.machine.deadline) == (["b", "c"], now.monotonic)
    harness.time_ms = 50_000
    harness.perform(f"beat: hb g id=b epoch={consumer.members['b'].current.member_epoch}")
    harness.perform("after 1")
    assert list(consumer.members) == ["b"]
