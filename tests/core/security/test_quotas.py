"""Which limit applies, what is counted, and how long a client waits: Kafka's rules, with numbers of its own tests."""

from __future__ import annotations

import tracemalloc

import pytest

from kpybroker.core.rate import Rate
from kpybroker.core.security.quotas import (
    DEFAULT,
    FORGOTTEN_AFTER_MS,
    INT_MAX,
    OWNERS_MAX,
    ClientQuotas,
    Entity,
    Limits,
    MutationQuota,
    Owner,
    RateQuota,
    TokenBucket,
    Uses,
    throttle_ms,
)

OWN, USERS, CLIENTS = Owner("u", "c"), Owner("u", ""), Owner("", "c")

LEVELS = [
    (Entity("u", "c"), OWN),
    (Entity("u", DEFAULT), OWN),
    (Entity("u", None), USERS),
    (Entity(DEFAULT, "c"), OWN),
    (Entity(DEFAULT, DEFAULT), OWN),
    (Entity(DEFAULT, None), USERS),
    (Entity(None, "c"), CLIENTS),
    (Entity(None, DEFAULT), CLIENTS),
]
"""Kafka's order of precedence, and who shares the use of each."""

SPIKE_AT_MS = 10_500


def limits(*entities: Entity) -> Limits:
    made = Limits()
    for number, entity in enumerate(entities):
        made.set(entity, number)
    return made


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_most_specific_of_eight_levels_applies(first: int) -> None:
    entity, owner = LEVELS[first]
    lower = [entity for entity, _ in LEVELS[first + 1 :]]
    others = [Entity("u", "other"), Entity("other", None), Entity("other", "c"), Entity(None, "other")]
    assert limits(entity, *lower, *others).find("u", "c") == (owner, 0)


def test_a_limit_that_is_removed_lets_the_next_level_apply() -> None:
    made = limits(*(entity for entity, _ in LEVELS))
    for number, (entity, owner) in enumerate(LEVELS):
        assert made.find("u", "c") == (owner, number)
        made.set(entity, None)
    assert made.find("u", "c") is None
    assert len(made) == 0


def test_a_client_without_an_id_is_limited_as_a_user_only() -> None:
    pairs = [Entity("u", DEFAULT), Entity(DEFAULT, DEFAULT), Entity(None, DEFAULT)]
    assert limits(*pairs).find("u", "") is None
    assert limits(*pairs, Entity(DEFAULT, None)).find("u", "") == (USERS, 3)
    assert limits(*pairs, Entity(DEFAULT, None), Entity("u", None)).find("u", "") == (USERS, 4)


def test_a_name_like_the_default_is_a_name() -> None:
    assert limits(Entity(DEFAULT, None)).find("<default>", "c") == (Owner("<default>", ""), 0)
    assert limits(Entity("<default>", None)).find("u", "c") is None


def quota(limit: float, *, windows: int = 11, throttle_ms_max: int | None = None) -> RateQuota:
    made = RateQuota(windows, 1000, throttle_ms_max)
    made.limits.set(Entity(None, DEFAULT), limit)
    return made


def test_a_spike_is_waited_for() -> None:
    """ClientQuotaManagerTest.testQuotaViolation: 400 a second of 500, then 2 300 at once, of 10.5 s: 600 a second."""
    made = quota(500)
    for second in range(10):
        assert made.record("u", "c", 400, second * 1000) == 0
    assert made.record("u", "c", 2300, SPIKE_AT_MS) == 2100


def test_the_wait_ends_when_the_samples_are_old() -> None:
    made = quota(500)
    made.record("u", "c", 10_000, 0)
    assert made.record("u", "c", 0, 1000) > 0
    assert made.record("u", "c", 0, 12_000) == 0


def test_what_is_taken_back_does_not_count() -> None:
    made = quota(500)
    assert made.record("u", "c", 50_000, 0) > 0
    made.record_only("u", "c", -50_000, 0)
    assert made.record("u", "c", 1000, 0) == 0


def test_request_time_is_waited_for_one_window_at_most() -> None:
    made = quota(1, throttle_ms_max=1000)
    assert made.record("u", "c", 500, 0) == 1000


@pytest.mark.parametrize(("longest", "expected"), [(None, 0), (1000, 1000)])
def test_a_limit_of_zero_as_in_kafka(longest: int | None, expected: int) -> None:
    """``Math.round`` of infinity is the largest long, whose low 32 bits are -1: no one waits, but where it is
    bounded."""
    assert quota(0, throttle_ms_max=longest).record("u", "c", 1, 0) == expected


def test_a_wait_fits_into_its_field() -> None:
    rate = Rate(11, 1000)
    rate.record(1e15, 0)
    assert throttle_ms(rate, 1, 0) == INT_MAX


def test_a_fetch_may_take_what_all_windows_but_one_allow() -> None:
    assert quota(500).value_max("u", "c") == 5000
    assert quota(500, windows=1).value_max("u", "c") == 0
    assert RateQuota(11, 1000).value_max("u", "c") is None


def test_the_clients_of_an_owner_share_its_rate_and_others_do_not() -> None:
    made = RateQuota(11, 1000)
    made.limits.set(Entity("u", None), 100)
    made.limits.set(Entity(DEFAULT, "c"), 100)
    assert made.record("u", "a", 1000, 0) == 0
    assert made.record("u", "b", 1, 0) > 0
    assert made.record("v", "c", 1000, 0) == 0
    assert made.record("w", "c", 1000, 0) == 0
    assert made.record("w", "other", 1e9, 0) == 0


def test_owners_are_forgotten_after_an_hour_and_when_there_are_too_many() -> None:
    uses = Uses(object)
    first = uses.of(Owner("0", ""), 0)
    for number in range(1, OWNERS_MAX):
        uses.of(Owner(str(number), ""), 1)
    assert uses.of(Owner("0", ""), 1) is first
    assert len(uses) == OWNERS_MAX
    uses.of(Owner("new", ""), 1)
    assert len(uses) == OWNERS_MAX
    assert uses.of(Owner("0", ""), 1) is first, "the least recently used is forgotten first"
    assert uses.of(Owner("0", ""), 1 + FORGOTTEN_AFTER_MS) is not first
    for number in range(OWNERS_MAX):
        uses.of(Owner(f"later {number}", ""), 2 + FORGOTTEN_AFTER_MS)
    assert len(uses) <= OWNERS_MAX


def test_tokens_come_back_at_the_rate_and_up_to_the_burst() -> None:
    """KIP-599's example: 5 a second over 100 s, and 560 at once."""
    bucket = TokenBucket()
    now_ms = 1_700_000_000_000
    bucket.take(560, 5, 500, now_ms)
    assert bucket.measure(5, 500, now_ms) == -60
    assert bucket.measure(5, 500, now_ms + 12_000) == 0
    assert bucket.measure(5, 500, now_ms + 3_600_000) == 500


NOW_MS = 1_700_000_000_000


def mutations(limit: float) -> MutationQuota:
    made = MutationQuota(11, 1000)
    made.limits.set(Entity("u", None), limit)
    return made


def test_a_strict_request_is_refused_when_nothing_is_left() -> None:
    made = mutations(1)
    share = made.share("u", "c", NOW_MS, is_strict=True)
    assert share is not None
    assert share.take(30, NOW_MS), "what is there may be exceeded once"
    assert share.throttle_ms(NOW_MS) == 0, "and no one waits for that"
    assert not share.take(1, NOW_MS)
    assert share.throttle_ms(NOW_MS) == 19_000
    assert share.throttle_ms(NOW_MS + 4_000) == 15_000, "the wait began when it was refused"
    later = made.share("u", "c", NOW_MS + 19_000, is_strict=True)
    assert later is not None
    assert later.take(1, NOW_MS + 19_000)


def test_any_other_request_is_done_and_waits() -> None:
    share = mutations(1).share("u", "c", NOW_MS, is_strict=False)
    assert share is not None
    assert share.take(30, NOW_MS)
    assert share.throttle_ms(NOW_MS) == 19_000
    assert share.take(1, NOW_MS)
    assert share.throttle_ms(NOW_MS) == 20_000


def test_without_a_limit_there_is_no_share() -> None:
    assert mutations(1).share("v", "c", NOW_MS, is_strict=True) is None


def test_a_change_replaces_all_limits_of_an_entity() -> None:
    quotas = ClientQuotas(11, 1000, 11, 1000)
    entity = Entity("u", None)
    quotas.set(entity, {"producer_byte_rate": 1, "consumer_byte_rate": 2, "request_percentage": 3})
    quotas.set(Entity(None, "c"), {"controller_mutation_rate": 4})
    assert len(quotas) == 4
    quotas.set(entity, {"consumer_byte_rate": 5})
    assert len(quotas) == 2
    assert quotas.produced.limits.find("u", "c") is None
    assert quotas.consumed.limits.find("u", "c") == (USERS, 5)
    assert quotas.mutations.limits.find("u", "c") == (CLIENTS, 4)


def test_long_names_are_not_kept_and_are_still_distinct() -> None:
    uses = Uses(object)
    long = "x" * 30_000
    tracemalloc.start()
    try:
        found = [uses.of(Owner(f"{long}{number}", f"{long}{number}"), 0) for number in range(1000)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 4 * 1024 * 1024
    assert len(set(map(id, found))) == 1000
    assert uses.of(Owner(f"{long}7", f"{long}7"), 1) is found[7]
