"""Sessions: what they outlive, and when they end. No sockets; the clock is the test's."""

from __future__ import annotations

import struct

import pytest

from kpybroker.coordination.server.sessions import Limits
from tests.coordination.server.conversation import PING, Session, connect, create, read, versioned
from tests.coordination.server.harness import Bench, Client

CREATE, DELETE, EXISTS, GET, CLOSE = 1, 2, 3, 4, -11
NO_NODE = -101
DELETED = 2


def connected(bench: Bench) -> tuple[Client, Session]:
    client = bench.client()
    return client, client.connect()


@pytest.mark.parametrize(("wanted", "granted"), [(0, 4_000), (4_001, 4_001), (18_000, 18_000), (10**9, 40_000)])
def test_a_timeout_is_between_two_and_twenty_ticks(wanted: int, granted: int) -> None:
    session = Bench(Limits(tick_ms=2_000)).client().connect(timeout_ms=wanted)
    assert session.timeout_ms == granted
    assert session.id > 0
    assert len(session.password) == 16


def test_a_session_survives_its_connection_for_its_timeout() -> None:
    bench = Bench()
    client, session = connected(bench)
    assert client.ask(CREATE, create("/e", flags=1))[0] == 0
    client.ask(GET, read("/e", watch=True))
    bench.service.remove(client.peer)
    bench.now += 29.9
    bench.service.expire()
    again = bench.client()
    assert again.connect(session.id, session.password) == session
    assert again.ask(EXISTS, read("/e"))[0] == 0
    again.ask(5, create("/e", b"2")[:-4])  # watches were the connection's
    assert again.events() == []


def test_a_session_ends_when_its_client_was_not_heard_in_time() -> None:
    bench = Bench()
    owner, session = connected(bench)
    other, _ = connected(bench)
    owner.ask(CREATE, create("/e", flags=1))
    assert other.ask(EXISTS, read("/e", watch=True))[0] == 0
    bench.now += 20
    other.ask(11, xid=-2)
    bench.now += 9.9
    bench.service.expire()
    assert other.events() == []
    bench.now += 0.1
    bench.service.expire()
    assert owner.is_aborted
    assert not other.is_aborted
    bench.commit()
    assert other.events() == [(DELETED, "/e")]
    late = bench.client()
    assert late.connect(session.id, session.password) == Session(0, 0, bytes(16))
    assert late.peer.is_over


def test_the_session_of_an_owner_that_is_known_to_be_gone_ends_at_once() -> None:
    bench = Bench()
    owner, session = connected(bench)
    other, _ = connected(bench)
    owner.ask(CREATE, create("/e", flags=1))
    owner.ask(CREATE, create("/p"))
    assert other.ask(EXISTS, read("/e", watch=True))[0] == 0
    assert not bench.service.expire_owner("/nothing")
    assert not bench.service.expire_owner("/p")
    assert bench.service.expire_owner("/e")
    bench.commit()
    assert other.events() == [(DELETED, "/e")]
    assert owner.is_aborted
    assert bench.client().connect(session.id, session.password).id == 0
    assert "/p" in bench.store.image.nodes


def test_what_arrives_after_the_end_of_its_session_is_not_performed() -> None:
    bench = Bench()
    expired, _ = connected(bench)
    bench.now += 30
    bench.service.expire()
    replaced, session = connected(bench)
    bench.client().connect(session.id, session.password)
    for late in (expired, replaced):
        late.send(struct.pack(">ii", 1, CREATE) + create("/late", flags=1))
        assert late.frames() == []
    assert "/late" not in bench.store.image.nodes


def test_every_message_counts_as_heard() -> None:
    bench = Bench()
    client, _ = connected(bench)
    for _ in range(10):
        bench.now += 29
        bench.service.expire()
        client.ask(11, xid=-2)
    assert bench.service.sessions.next_deadline() == bench.now + 30
    assert not client.is_aborted


def test_a_session_is_its_owners_alone() -> None:
    bench = Bench()
    client, session = connected(bench)
    thief = bench.client()
    assert thief.connect(session.id, b"x" * 16).id == 0
    assert thief.peer.is_over
    assert not client.is_aborted
    assert bench.client().connect(session.id + 1_000, session.password).id == 0


def test_a_client_that_connects_again_ends_its_earlier_connection() -> None:
    bench = Bench()
    client, session = connected(bench)
    again = bench.client()
    assert again.connect(session.id, session.password, 10_000) == session._replace(timeout_ms=10_000)
    assert client.is_aborted
    assert again.ask(11, xid=-2)[0] == 0
    bench.now += 10
    bench.service.expire()
    assert again.is_aborted


def test_a_session_that_is_closed_is_over_at_once() -> None:
    bench = Bench()
    owner, session = connected(bench)
    owner.ask(CREATE, create("/e", flags=1))
    assert owner.ask(CLOSE) == (0, b"")
    assert owner.peer.is_over
    assert "/e" not in bench.store.image.nodes
    assert bench.client().connect(session.id, session.password).id == 0
    assert len(bench.service.sessions) == 0


def test_a_session_can_be_taken_over_and_closed_in_one_go() -> None:
    bench = Bench()
    owner, session = connected(bench)
    owner.ask(CREATE, create("/e", flags=1))
    end = bench.client()
    frames = end.ask_raw(connect(session.id, session.password), struct.pack(">ii", 1, CLOSE))
    assert len(frames) == 2
    assert owner.is_aborted
    assert "/e" not in bench.store.image.nodes


def test_a_stall_of_the_server_is_not_counted_against_its_clients() -> None:
    bench = Bench()
    client, _ = connected(bench)
    bench.now += 100
    bench.service.sessions.prolong(71)
    bench.service.expire()
    assert not client.is_aborted
    bench.now += 1
    bench.service.expire()
    assert client.is_aborted


def test_old_clients_get_a_response_without_read_only() -> None:
    bench = Bench()
    (result,) = bench.client().ask_raw(connect()[:-1])
    assert len(result) == 36
    (result,) = bench.client().ask_raw(connect())
    assert len(result) == 37
    assert result[-1] == 0


def test_a_container_goes_after_its_last_child_and_not_before() -> None:
    bench = Bench()
    client, _ = connected(bench)
    for path in ("/unused", "/used", "/left"):
        client.ask(19, create(path, flags=4))
    for path in ("/used/a", "/left/a"):
        client.ask(CREATE, create(path))
    client.ask(DELETE, versioned("/left/a"))
    bench.service.remove_containers()
    assert sorted(bench.store.image.containers) == ["/unused", "/used"]
    assert client.ask(EXISTS, read("/left"))[0] == NO_NODE


def test_after_a_restart_all_sessions_are_over_and_zxids_go_on() -> None:
    before = Bench()
    client, session = connected(before)
    client.ask(CREATE, create("/a"))
    after = Bench()
    again = after.client()
    (result,) = again.ask_raw(connect(session.id, session.password, zxid=before.store.changed_zxid))
    assert Session.of(result).id == 0
    assert again.peer.is_over
    assert again.ask_raw(PING) == []
