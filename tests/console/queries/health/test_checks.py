"""What follows from what was seen: each reason, its link, and that nothing is green that is not known."""

from __future__ import annotations

import pytest

from kpybroker.client.actions.partitions import Partition
from kpybroker.console.queries.health import checks
from kpybroker.console.queries.health.checks import Brokers, Check, Disk, Finding, GroupLag, Newest, Verdict

WHOLE = [Partition("a", number, 1 + number % 2, [1 + number % 2, 2 - number % 2], [1, 2]) for number in range(4)]


def texts(check: Check) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in check.findings]


def test_a_broker_that_replicas_name_is_missing_and_one_that_was_seen() -> None:
    seen = Brokers(frozenset({1}), frozenset(), {1: 4, 3: 2}, {1: 5000, 2: 0, 3: 1000}, 1)
    assert texts(checks.brokers(seen)) == [
        ("warn", "broker 2 is missing: it holds no replica, seen last at 1970-01-01T00:00:00.000Z"),
        ("bad", "broker 3 is missing: 2 replicas should be there, seen last at 1970-01-01T00:00:01.000Z"),
    ]


def test_a_broker_that_does_not_respond_is_named_and_so_is_a_missing_controller() -> None:
    found = checks.brokers(Brokers(frozenset({1, 2}), frozenset({2}), {}, {}, None))
    assert [(one.kind, one.link) for one in found.findings] == [("bad", "/brokers/2"), ("bad", "/replication")]
    assert checks.brokers(Brokers(frozenset({1}), frozenset(), {1: 9}, {1: 0}, 1)).kind == "good"


def test_partitions_offline_and_under_replicated_are_counted_and_some_named() -> None:
    odd = [Partition("b", number, None, [1], []) for number in range(7)] + [Partition("c", 0, 1, [1, 2], [1])]
    assert texts(checks.partitions([*WHOLE, *odd])) == [
        ("bad", "7 partitions without a leader: b-0, b-1, b-2, b-3, b-4 and 2 more"),
        ("warn", "1 partition under-replicated: c-0"),
    ]
    assert checks.partitions(WHOLE).kind == "good"


def test_leaders_are_off_balance_beyond_what_kafka_tolerates() -> None:
    all_on_one = [Partition("a", number, 1, [1 + number % 2, 2 - number % 2], [1, 2]) for number in range(4)]
    present = frozenset({1, 2})
    assert texts(checks.leaders(all_on_one, present)) == [
        ("warn", "broker 2 should lead 2 partitions, and others lead 2 of them")
    ]
    assert checks.leaders(all_on_one, frozenset({1})).kind == "good"  # a broker that is away cannot lead
    assert checks.leaders(WHOLE, present).kind == "good"
    one_of_ten = [Partition("a", number, 1 if number else 2, [1, 2], [1, 2]) for number in range(10)]
    assert checks.leaders(one_of_ten, present).kind == "good"


def test_a_partition_under_min_isr_is_bad_and_one_that_is_not_known_is_not_green() -> None:
    found = checks.min_isr(WHOLE, {"a": 3}, "")
    assert found.kind == "bad"
    assert "producers with acks=all fail" in found.findings[0].text
    assert checks.min_isr(WHOLE, {"a": 2}, "").kind == "good"
    assert checks.min_isr(WHOLE, {}, "not allowed").kind == "idle"


def test_groups_that_lag_and_grow_are_named_with_a_link_that_is_escaped() -> None:
    lags = [GroupLag("a&b", 7, 5, 60.0), GroupLag("idle", 9, None, 60.0)]
    found = checks.groups(lags, 2, 60.0, "")
    assert found.findings == [Finding("warn", "group a&b lags by 7, and grew by 5 within 60 s", "/group?id=a%26b")]
    assert checks.groups(lags[1:], 1, 60.0, "").kind == "good"
    assert checks.groups(lags[1:], 1, 1.0, "").kind == "idle"  # too early to say
    assert "; 3 were not asked" in checks.groups(lags[1:], 4, 60.0, "").said


def test_hanging_transactions_are_bad() -> None:
    rows = [{"topic": "t", "partition": number, "last_timestamp_ms": 0} for number in range(7)]
    found = checks.transactions(rows, 900, "")
    assert len(found.findings) == 6
    assert found.findings[0].link == "/transactions?topic=t"
    assert found.findings[-1].text == "and 2 more"
    assert checks.transactions([], 900, "").kind == "good"


@pytest.mark.parametrize(
    ("disk", "kind", "text"),
    [
        (Disk(1, "/d", 100, 50, False), "good", ""),
        (Disk(1, "/d", 100, 14, False), "warn", "14 B of 100 B are free"),
        (Disk(1, "/d", 100, 4, False), "bad", "are free"),
        (Disk(1, "/d", 100, 50, True), "bad", "is offline"),
        (Disk(1, "/d", 100, 50, False, 7200.0), "warn", "is full in 2.0 hours"),
        (Disk(1, "/d", 100, 50, False, 10.0**6), "good", ""),
        (Disk(1, "/d", None, None, False), "idle", ""),
    ],
)
def test_a_disk(disk: Disk, kind: str, text: str) -> None:
    found = checks.disks([disk], "")
    assert found.kind == kind
    assert all(text in one.text for one in found.findings)


def test_a_record_from_the_future_is_a_clock_that_differs() -> None:
    assert texts(checks.clocks(Newest("t", 2, 60_000), 0, "")) == [
        ("warn", "the newest record of t-2 is 60 s ahead of this machine's clock")
    ]
    assert checks.clocks(Newest("t", 2, 60_000), 59_000, "").kind == "good"
    assert "a clock that is behind cannot be seen" in checks.clocks(None, 0, "").said


def test_the_verdict_is_the_worst_of_its_checks_and_names_bad_things_first() -> None:
    warn = Check("a", "", [Finding("warn", "w", "/")])
    bad = Check("b", "", [Finding("bad", "b", "/")])
    assert Verdict([warn, bad]).kind == "bad"
    assert [one.kind for one in Verdict([warn, bad]).findings] == ["bad", "warn"]
    assert Verdict([Check("a", "", unknown="x")]).kind == "idle"
    assert Verdict([Check("a", "")]).kind == "good"
