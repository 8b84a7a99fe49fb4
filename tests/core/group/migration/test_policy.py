"""What each `group.consumer.migration.policy` lets happen."""

from __future__ import annotations

import pytest

from kpybroker.core.consumer_group.values import ConsumerGroupLimits, MigrationPolicy
from tests.core.consumer_group.harness import ConsumerHarness


def test_the_default_is_kafkas() -> None:
    assert ConsumerGroupLimits().migration_policy is MigrationPolicy("bidirectional")


@pytest.mark.parametrize(
    ("policy", "up", "join", "down"),
    [
        ("bidirectional", True, True, True),
        ("upgrade", True, True, False),
        ("downgrade", False, True, True),
        ("disabled", False, False, False),
    ],
)
def test_policies(policy: str, up: bool, join: bool, down: bool) -> None:
    harness = ConsumerHarness()
    harness.do_limits(f"migration_policy={policy}")
    harness.do_config("group_initial_rebalance_delay_ms=0")
    for line in ("a: join classic v=3", "after 0", "b: hb classic id=b epoch=0"):
        harness.perform(line)
    for line in ("c: hb new id=c epoch=0", "d: join new id=d"):
        harness.perform(line)
    joined = harness.machine.groups["new"].consumer
    assert joined is not None
    assert ("d" in joined.members) is join
    harness.perform("e: hb new id=c epoch=-1")
    assert (harness.machine.groups["classic"].consumer is not None) is up
    assert (harness.machine.groups["new"].consumer is None) is down
