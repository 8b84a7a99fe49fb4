"""The checker of members' own words: what is in order passes, and each kind of fault is found."""

from __future__ import annotations

import pytest

from compat_tests.support.groups.ownership import (
    Commit,
    Event,
    Kind,
    Partition,
    Renewal,
    Report,
    Sessions,
    commits,
    disorder,
    double_owners,
    problems_of,
    read_without_owning,
    stale_commits,
)

P, Q = ("t", 0), ("t", 1)


def took(member: str, time_ns: int, *partitions: Partition) -> Event:
    return Event(member, time_ns, Kind.ASSIGNED, partitions)


def gave(member: str, time_ns: int, *partitions: Partition, kind: Kind = Kind.REVOKED) -> Event:
    return Event(member, time_ns, kind, partitions)


def read(member: str, time_ns: int, offset: int, partition: Partition = P) -> Event:
    return Event(member, time_ns, Kind.RECORD, (partition,), offset, f"v{offset}")


HANDED_OVER = [took("a", 1, P, Q), read("a", 2, 0), gave("a", 3, P), took("b", 4, P), read("b", 5, 1), read("b", 6, 2)]


def test_a_partition_that_is_handed_over_has_one_owner_at_a_time() -> None:
    assert problems_of(HANDED_OVER, ["v0", "v1", "v2"]) == []
    assert problems_of(HANDED_OVER[::-1], ["v0", "v1", "v2"]) == [], "in whatever order the words arrive"


@pytest.mark.parametrize("until", [[], [gave("a", 5, P)], [Event("a", 5, Kind.CLOSING)], [Event("a", 5, Kind.KILLED)]])
def test_a_partition_handed_out_before_it_was_released_is_found(until: list[Event]) -> None:
    (problem,) = double_owners([took("a", 1, P, Q), took("b", 4, P), *until])
    assert problem.startswith("t-0: a had it from 1 until ")


def test_an_overlap_with_the_one_before_the_last_is_found() -> None:
    assert len(double_owners([took("a", 1, P), took("b", 2, P), gave("b", 3, P), took("c", 4, P)])) == 2


@pytest.mark.parametrize("end", [gave("a", 9, P, kind=Kind.LOST), Event("a", 9, Kind.FAILED)])
def test_a_member_that_was_fenced_learns_of_it_late(end: Event) -> None:
    assert double_owners([took("a", 1, P), took("b", 4, P), end]) == []


@pytest.mark.parametrize("end", [Kind.CLOSING, Kind.KILLED])
def test_a_member_that_ends_owns_nothing(end: Kind) -> None:
    ended = [took("a", 1, P), Event("a", 2, end)]
    assert double_owners([*ended, took("b", 3, P)]) == []
    assert read_without_owning([*ended, read("a", 4, 0)]) == ["a read t-0 at 0 without owning it"]


def test_records_of_partitions_that_are_not_owned_are_found() -> None:
    assert read_without_owning([took("a", 1, Q), read("a", 2, 0)]) == ["a read t-0 at 0 without owning it"]
    assert len(read_without_owning([*HANDED_OVER, read("a", 7, 3)])) == 1


def test_records_out_of_order_are_found_and_those_after_a_new_assignment_may_repeat() -> None:
    assert len(disorder([took("a", 1, P), read("a", 2, 1), read("a", 3, 1)])) == 1
    assert len(disorder([took("a", 1, P), read("a", 2, 1), read("a", 3, 0)])) == 1
    assert disorder([took("a", 1, P), read("a", 2, 1), gave("a", 3, P), took("a", 4, P), read("a", 5, 1)]) == []


def test_records_lost_and_records_of_no_one_are_found() -> None:
    assert problems_of(HANDED_OVER, ["v0", "v1", "v2", "v3"]) == ["v3 was read by no one"]
    assert problems_of(HANDED_OVER, ["v0", "v1"]) == ["v2 was read and never written"]


# --- with the members' sessions

SESSION = 10


def beats(**sent: list[int]) -> Sessions:
    """Heartbeats of each member that were accepted; negative ones are those of a member that joins."""
    return Sessions({name: [Renewal(abs(at), at < 0) for at in times] for name, times in sent.items()}, SESSION)


def reporting(*reports: Report) -> Sessions:
    """Of a, in whose session all happens, and b's."""
    renewals = {"a": [Renewal(0, True), Renewal(5), Renewal(10), Renewal(15)], "b": [Renewal(0, True), Renewal(10)]}
    return Sessions(renewals, SESSION, {"a": reports})


def report(sent_ns: int, owned: set[Partition] | None, given: set[Partition] | None, is_certain: bool = True) -> Report:
    said, got = (None if one is None else frozenset(one) for one in (owned, given))
    return Report(sent_ns, sent_ns + 1, said, got, is_certain)


def committed(member: str, time_ns: int) -> Event:
    return Event(member, time_ns, Kind.COMMITTED)


FENCED = [took("a", 1, P), took("b", 14, P), gave("a", 20, P, kind=Kind.LOST)]


def test_a_member_that_was_fenced_owned_its_partitions_until_its_session_ended() -> None:
    assert double_owners(FENCED, beats(a=[-1, 4], b=[-13])) == []
    assert len(double_owners(FENCED, beats(a=[-1, 5], b=[-13]))) == 1, "which is 15, and b had it from 14 on"


def test_what_a_fenced_member_says_afterwards_does_not_count() -> None:
    after = [took("a", 1, P), took("b", 14, P), gave("a", 20, P)]
    assert double_owners(after, beats(a=[-1, 3], b=[-13])) == []
    assert len(double_owners(after, beats(a=[-1, 3, 16], b=[-13]))) == 1, "it was not fenced"


def test_a_member_that_joins_again_owns_nothing_from_before() -> None:
    assert double_owners(FENCED, beats(a=[-1, 5, -12, 18], b=[-13])) == []


def test_an_assignment_that_arrives_after_the_session_gives_nothing() -> None:
    late = [took("a", 1, P), gave("a", 30, P), took("b", 20, P), gave("b", 25, P, kind=Kind.LOST)]
    assert double_owners(late, beats(a=[-1, 8, 18, 28], b=[-5])) == []
    assert len(double_owners(late, beats(a=[-1, 8, 18, 28], b=[-15]))) == 1


def test_a_member_whose_heartbeats_are_not_known_owns_nothing() -> None:
    assert double_owners(FENCED, beats(b=[-13])) == []


def test_a_commit_is_of_all_that_was_handed_out_of_what_is_owned() -> None:
    events = [took("a", 1, P, Q), read("a", 2, 7), read("a", 3, 4, Q), gave("a", 4, Q), committed("a", 6)]
    assert list(commits(events)) == [Commit("a", P, 8, 1, 4, 6)]
    again = [*events, gave("a", 7, P), took("a", 8, P), committed("a", 9)]
    assert len(list(commits(again))) == 1, "nothing was handed out since it had it again"


def test_an_accepted_commit_of_a_member_that_was_fenced_is_found() -> None:
    sessions = beats(a=[-1], b=[-13])
    before = [*FENCED, read("a", 2, 0), committed("a", 13)]
    assert stale_commits(before, sessions) == []
    asked_before = [*FENCED, read("a", 13, 0), committed("a", 15)]
    assert stale_commits(asked_before, sessions) == []
    (problem,) = stale_commits([*FENCED, read("a", 15, 0), committed("a", 16)], sessions)
    assert problem.startswith("t-0: a, which had it from 1, committed 1 after 15, when b had it from 14")


def test_a_commit_after_an_owner_before_is_in_order() -> None:
    events = [*HANDED_OVER, committed("b", 7)]
    assert stale_commits(events, beats(a=[-1], b=[-4])) == []


# --- with what members report

TO_BOTH = [took("a", 2, P, Q), took("b", 10, Q), gave("a", 14, Q)]
JOINED = report(0, set(), {P, Q})


def test_what_a_member_does_not_report_is_free_when_it_is_to_go_to_another() -> None:
    """librdkafka, when a heartbeat fails before it has acknowledged what its application was given."""
    assert len(double_owners(TO_BOTH, reporting(JOINED))) == 1
    assert double_owners(TO_BOTH, reporting(JOINED, report(8, set(), {P}))) == []
    assert double_owners(TO_BOTH, reporting(JOINED, report(8, {P}, {P}), report(12, {P, Q}, None))) == []
    assert len(double_owners(TO_BOTH, reporting(JOINED, report(11, set(), {P})))) == 1, "b had it before that"


def test_a_partition_that_is_to_go_to_another_is_not_free_before_the_member_reports_without_it() -> None:
    assert len(double_owners(TO_BOTH, reporting(JOINED, report(8, None, {P})))) == 1
    assert len(double_owners(TO_BOTH, reporting(JOINED, report(8, {P, Q}, {P}), report(13, {P}, None)))) == 1
    assert double_owners(TO_BOTH, reporting(JOINED, report(6, {P, Q}, {P}), report(9, {P}, None))) == []


def test_reports_count_where_no_heartbeats_are_known() -> None:
    def reported(*reports: Report) -> Sessions:
        return Sessions(None, reports={"a": reports})

    assert len(double_owners(TO_BOTH, reported(JOINED))) == 1
    assert double_owners(TO_BOTH, reported(JOINED, report(8, set(), {P}))) == []
    assert double_owners(FENCED, reported()) == [], "it was fenced"


def test_a_partition_that_the_member_keeps_is_its_own_whatever_it_reports() -> None:
    assert len(double_owners(TO_BOTH, reporting(JOINED, report(8, set(), {P, Q})))) == 1
    assert len(double_owners(TO_BOTH, reporting(JOINED, report(8, set(), None)))) == 1


def test_a_partition_that_was_free_and_is_given_again_is_the_members_own_again() -> None:
    reports = [JOINED, report(4, set(), {P}), report(6, None, {P, Q})]
    (problem,) = double_owners(TO_BOTH, reporting(*reports))
    assert problem.startswith("t-1: a had it from 7 until 14")
    assert double_owners([took("b", 5, Q), gave("b", 6, Q), *TO_BOTH[::2]], reporting(*reports)) == []


def test_a_report_that_may_have_counted_frees_until_a_certain_one_shows_the_partition() -> None:
    lost = report(8, set(), None, is_certain=False)
    assert double_owners(TO_BOTH, reporting(JOINED, lost)) == []
    assert double_owners(TO_BOTH, reporting(JOINED, lost, report(12, set(), {P}))) == []
    assert len(double_owners(TO_BOTH, reporting(JOINED, lost, report(9, set(), {P, Q})))) == 1


def test_a_member_that_reported_without_a_partition_may_commit_what_it_has_read_of_it() -> None:
    """Kafka asks for the member's epoch alone, when it has the newest."""
    events = [*TO_BOTH, read("a", 11, 0, Q), committed("a", 12)]
    assert len(stale_commits(events, reporting(JOINED))) == 1
    assert stale_commits(events, reporting(JOINED, report(8, set(), {P}))) == []
