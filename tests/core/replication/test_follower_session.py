"""The follower's side of a fetch session against the leader's: both sides know the same positions."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.replication.fetch_session import CachedPartition, FetchSession, FetchSessionCache
from kpybroker.core.replication.follower_session import FollowerSession, Position
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchRequest

ID = b"\x01" * 16
OTHER_ID = b"\x02" * 16


def position(offset: int, topic_id: bytes = ID) -> Position:
    return Position(topic_id, offset, 0, 1024, 1, 1)


def named(request: FetchRequest) -> dict[tuple[str, int], int]:
    return {(t.topic, p.partition): p.fetch_offset for t in request.topics for p in t.partitions}


def forgotten(request: FetchRequest) -> set[tuple[str, int, bytes]]:
    return {(t.topic, index, t.topic_id) for t in request.forgotten_topics_data for index in t.partitions}


def test_the_first_request_names_all_and_the_next_ones_what_has_changed() -> None:
    session = FollowerSession()
    asked = session.request({("t", 0): position(1), ("t", 1): position(1)}, 17)
    assert asked is not None
    request, version = asked
    assert (request.session_id, request.session_epoch, version) == (0, 0, 17)
    assert named(request) == {("t", 0): 1, ("t", 1): 1}
    assert session.take_response(0, 77)
    asked = session.request({("t", 0): position(1), ("t", 1): position(2)}, 17)
    assert asked is not None
    request, _ = asked
    assert (request.session_id, request.session_epoch, named(request)) == (77, 1, {("t", 1): 2})
    assert session.take_response(0, 77)
    asked = session.request({("t", 1): position(2)}, 17)
    assert asked is not None
    request, _ = asked
    assert (request.session_epoch, named(request), forgotten(request)) == (2, {}, {("t", 0, ID)})


def test_a_recreated_topic_is_forgotten_under_its_old_id() -> None:
    session = FollowerSession()
    session.request({("t", 0): position(5)}, 17)
    session.take_response(0, 77)
    asked = session.request({("t", 0): position(0, OTHER_ID)}, 17)
    assert asked is not None
    assert forgotten(asked[0]) == {("t", 0, ID)}
    assert named(asked[0]) == {("t", 0): 0}


def test_a_topic_without_an_id_is_fetched_by_name_and_in_a_session_of_its_own() -> None:
    session = FollowerSession()
    session.request({("t", 0): position(5)}, 17)
    session.take_response(0, 77)
    asked = session.request({("t", 0): position(5), ("u", 0): position(0, bytes(16))}, 17)
    assert asked is not None
    request, version = asked
    assert (version, request.session_id, request.session_epoch) == (12, 77, 0)
    assert named(request) == {("t", 0): 5, ("u", 0): 0}


def test_after_an_error_or_a_lost_connection_everything_is_named_again() -> None:
    for error, session_id in ((ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 77)):
        session = FollowerSession()
        session.request({("t", 0): position(5)}, 17)
        session.take_response(0, 77)
        session.request({("t", 0): position(5)}, 17)
        assert not session.take_response(error, 0)
        asked = session.request({("t", 0): position(5)}, 17)
        assert asked is not None
        assert (asked[0].session_id, asked[0].session_epoch, named(asked[0])) == (session_id, 0, {("t", 0): 5})
    session.lost()
    asked = session.request({("t", 0): position(5)}, 17)
    assert asked is not None
    assert named(asked[0]) == {("t", 0): 5}


def test_there_is_no_request_without_partitions() -> None:
    session = FollowerSession()
    assert session.request({}, 17) is None
    session.request({("t", 0): position(5)}, 17)
    session.take_response(0, 77)
    assert session.request({}, 17) is not None  # to be forgotten
    session.take_response(0, 77)
    assert session.request({}, 17) is None


positions = st.dictionaries(
    st.tuples(st.sampled_from("tu"), st.integers(0, 2)), st.integers(0, 3).map(position), min_size=0, max_size=5
)


steps = st.tuples(positions, st.booleans(), st.sampled_from(["responded", "lost", "forgotten"]))


@given(st.lists(steps, max_size=12))
def test_both_sides_know_the_same_positions(steps: list[tuple[dict[tuple[str, int], Position], bool, str]]) -> None:
    """For any order of fetches, changes, responses, lost connections, and evictions from the leader's cache."""
    asking = FollowerSession()
    cache = FetchSessionCache(10, lambda session: None)
    ids = count(1)
    for wanted, is_on, fate in steps:
        asked: tuple[FetchRequest, int] | None
        if is_on and asking.is_open:
            changed = {key: position for key, position in wanted.items() if key in asking.partitions}
            wanted = asking.partitions | changed
            asked = asking.request_changes(changed, 17)
        else:
            asked = asking.request(wanted, 17)
        if asked is None:
            assert not wanted
            continue
        assert asking.partitions == wanted
        request, _ = asked
        try:
            serving = cache.session_for(
                request.session_id, request.session_epoch, is_follower=True, uses_topic_ids=True, now_ms=0
            )
        except KafkaError as error:
            asking.take_response(error.code, 0)
            continue
        _serve(request, serving)
        assert {key[2]: c.fetch_offset for key, c in serving.partitions.items() if key[1] == "t"} == {
            index: p.fetch_offset for (name, index), p in wanted.items() if name == "t"
        }
        if request.session_epoch == 0:
            cache.keep(serving, ids, 0)
        if fate == "lost":
            asking.lost()
            continue
        assert asking.take_response(0, serving.session_id)
        if fate == "forgotten":
            cache.remove(serving.session_id)


def _serve(request: FetchRequest, serving: FetchSession) -> None:
    for topic in request.topics:
        for p in topic.partitions:
            serving.put(CachedPartition((topic.topic_id, topic.topic, p.partition), p.fetch_offset, 1024))
    for gone in request.forgotten_topics_data:
        for index in gone.partitions:
            serving.forget((gone.topic_id, gone.topic, index))
