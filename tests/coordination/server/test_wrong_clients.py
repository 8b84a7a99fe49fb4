"""Clients that are hostile or not ZooKeeper's, and the limits that hold for all."""

from __future__ import annotations

import struct

import pytest

from kpybroker.coordination.server.access import digest
from kpybroker.coordination.server.connection import ClientError
from kpybroker.coordination.server.places import STRANGERS_MAX
from kpybroker.coordination.server.sessions import Limits
from tests.coordination.server.conversation import connect, create, multi, read, set_data, text
from tests.coordination.server.harness import Bench, Client

NO_AUTH = -102
KAFKA = bytes.fromhex("0000002300120004000000010007636f6e73756d6572000d6b61666b612d707974686f6e063300")


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    ("sent", "cause"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "'GET ' as text"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "jute.maxbuffer"),
        (struct.pack(">i", -5), "a message of -5 bytes"),
        (struct.pack(">i", 0x100000), "a message of 1048576 bytes"),
        (KAFKA, "no message of ZooKeeper's protocol: version 1179652"),
        (framed(b""), "no message"),
        (framed(connect() + b"xx"), "2 bytes after a ConnectRequest"),
        (framed(struct.pack(">iqiqi", 0, 0, 0, 0, 1 << 30)), "1073741824 bytes where 0 are left"),
        (framed(connect()) + framed(b"\0\0"), "4 bytes where 2 are left"),
        (framed(connect()) + framed(struct.pack(">iii", 1, 4, -7)), "-7 bytes"),
        (framed(connect()) + framed(struct.pack(">iiqi", 1, 101, 0, 1 << 29)), "a vector of 536870912 items"),
        (framed(connect()) + framed(struct.pack(">ii", 1, 14) + struct.pack(">i?i", 9, False, -1)), "operation 9"),
        (framed(connect()) + framed(struct.pack(">ii", 1, 22) + multi((1, create("/a")))), "reads and writes"),
    ],
)
def test_what_is_no_request_ends_the_connection_with_its_cause(sent: bytes, cause: str) -> None:
    client = Bench().client()
    with pytest.raises(ClientError) as raised:
        client.send_bytes(sent)
    assert cause in str(raised.value)
    assert "\n" not in str(raised.value)


def test_bytes_may_arrive_one_by_one() -> None:
    bench = Bench()
    client = bench.client()
    for byte in framed(connect()) + framed(struct.pack(">ii", 3, 3) + read("/")):
        client.send_bytes(bytes([byte]))
    assert len(client.frames()) == 2


def test_the_largest_message_is_served() -> None:
    bench = Bench()
    client = bench.client()
    client.connect()
    room = 0xFFFFF - 8 - len(create("/a", b""))
    assert client.ask(1, create("/a", bytes(room)))[0] == 0
    with pytest.raises(ClientError):
        client.ask(5, set_data("/a", bytes(0xFFFFF)))


def test_connections_are_limited_for_each_address_and_in_all() -> None:
    bench = Bench(Limits(connections_per_address_max=2, connections_max=3))
    clients = [bench.client(address) for address in ("a", "a", "a", "b", "c")]
    for client in clients:
        client.send(connect())
    assert [client.is_aborted for client in clients] == [False, False, True, False, True]
    bench.service.remove(clients[0].peer)
    clients.append(bench.client("a"))
    clients[-1].connect()
    assert not clients[-1].is_aborted


def known(bench: Bench, credentials: bytes = b"kpybroker:password") -> Client:
    """One that proves who it is."""
    client = bench.client()
    client.connect()
    client.ask(100, struct.pack(">i", 0) + text("digest") + struct.pack(">i", len(credentials)) + credentials, xid=-4)
    return client


STRANGERS = {
    "nothing": b"",
    "half a message": struct.pack(">i", 44) + b"\0\0",
    "a session": framed(connect()),
    "a wrong password": framed(connect())
    + framed(struct.pack(">iii", -4, 100, 0) + text("digest") + struct.pack(">i", 3) + b"a:b"),
    "pings": framed(connect()) + framed(struct.pack(">ii", -2, 11)) * 3,
}


@pytest.mark.parametrize("sent", STRANGERS.values(), ids=STRANGERS)
def test_strangers_take_no_place_of_those_who_know_the_password(sent: bytes) -> None:
    """However many connections they open and whatever they send: a broker that starts again is served."""
    bench = Bench(Limits(connections_per_address_max=3, connections_max=3, sessions_max=STRANGERS_MAX + 3))
    bench.service.required = ("digest", digest(b"kpybroker:password"))
    before = known(bench)
    for _ in range(500):
        bench.client().send_bytes(sent)
    again = known(bench)
    assert not before.is_aborted
    assert not again.is_aborted
    for client in (before, again):
        assert client.ask(3, read("/"))[0] == 0
    assert len(bench.service.clients) <= STRANGERS_MAX + 2
    assert len(bench.service.sessions) <= STRANGERS_MAX + 2


def test_the_session_of_a_known_client_survives_a_stranger_that_resumes_it_and_leaves() -> None:
    bench = Bench()
    bench.service.required = ("digest", digest(b"kpybroker:password"))
    first = known(bench)
    session = first.peer.session
    assert session is not None
    second = bench.client()
    second.connect(session.id, session.password)
    bench.service.remove(second.peer)
    assert bench.service.sessions.get(session.id) is session


def test_a_stranger_may_send_little_at_once() -> None:
    bench = Bench()
    client = bench.client()
    with pytest.raises(ClientError, match="not known yet"):
        client.send_bytes(struct.pack(">i", 70_000))
    other = bench.client()
    other.connect()
    other.send_bytes(struct.pack(">i", 70_000))


def test_sessions_and_watches_are_limited() -> None:
    bench = Bench(Limits(sessions_max=1, watches_max=2))
    client = bench.client()
    client.connect()
    with pytest.raises(ClientError, match="1 sessions"):
        bench.client().connect()
    for name in ("a", "b", "c"):
        client.ask(3, read(f"/{name}", watch=True))
    with pytest.raises(ClientError, match="watches"):
        client.ask(3, read("/d", watch=True))


def test_a_client_that_does_not_read_is_not_read_from_and_at_last_closed() -> None:
    bench = Bench(Limits(unsent_bytes_max=1_000))
    deaf, writer = bench.client(), bench.client()
    deaf.connect()
    writer.connect()
    deaf.ask(106, text("/") + struct.pack(">i", 1))
    number = 0
    while deaf.peer.has_room:
        number += 1
        writer.ask(1, create(f"/n{number}"))
    assert not deaf.is_aborted
    while not deaf.is_aborted:
        number += 1
        writer.ask(1, create(f"/n{number}"))
    assert 16_000 < deaf.peer.unsent_bytes < 17_000


# --- four-letter words


def said(bench: Bench, word: bytes) -> str:
    client = bench.client()
    client.send_bytes(word)
    result = client.text()
    assert client.peer.is_over
    bench.service.remove(client.peer)
    return result


def busy() -> tuple[Bench, Client]:
    bench = Bench()
    client = bench.client()
    client.connect()
    client.ask(1, create("/a", b"12345", flags=1))
    client.ask(3, read("/a", watch=True))
    return bench, client


def test_words_say_how_it_is() -> None:
    bench, client = busy()
    assert said(bench, b"ruok") == "imok"
    assert said(bench, b"isro") == "rw"
    assert said(bench, b"wchs") == "1 connections watching 1 paths\nTotal watches:1\n"
    state = dict(line.split(": ") for line in said(bench, b"srvr").splitlines())
    assert state["Zookeeper version"].startswith("3.8.4-kpybroker-")
    assert (state["Mode"], state["Node count"], state["Zxid"]) == ("standalone", "2", f"0x{2:x}")
    assert state["Connections"] == "2"
    assert "Clients:\n /127.0.0.1:40000[1](queued=0,recved=3,sent=3)\n" in said(bench, b"stat")
    assert client.peer.session is not None
    assert f"sid=0x{client.peer.session.id:x},to=30000)" in said(bench, b"cons")
    assert "minSessionTimeout=4000\nmaxSessionTimeout=40000\n" in said(bench, b"conf")
    assert "zookeeper.version=3.8.4-kpybroker-" in said(bench, b"envi")
    rows = dict(line.split("\t") for line in said(bench, b"mntr").splitlines())
    assert (rows["zk_znode_count"], rows["zk_ephemerals_count"], rows["zk_watch_count"]) == ("2", "1", "1")


@pytest.mark.parametrize("word", [b"crst", b"dump", b"wchc", b"wchp"])
def test_words_that_cost_or_change_something_are_refused(word: bytes) -> None:
    assert said(Bench(), word) == f"{word.decode()} is not executed because it is not in the whitelist.\n"


def test_a_word_in_place_of_a_request_is_none() -> None:
    _, client = busy()
    with pytest.raises(ClientError):
        client.send_bytes(b"ruok")


def test_where_credentials_are_needed_a_client_without_them_reads_nothing_and_writes_nothing() -> None:
    bench = Bench()
    bench.service.required = ("digest", digest(b"kpybroker:secret"))
    children = set(bench.store.image.nodes["/"].children)
    for credentials in (None, b"kpybroker:guess"):
        stranger = bench.client()
        assert stranger.connect().id
        assert stranger.ask(11, xid=-2)[0] == 0
        if credentials is not None:
            prove(stranger, credentials)
        for operation, body in ((1, create("/a")), (4, read("/")), (14, multi())):
            assert stranger.ask(operation, body) == (NO_AUTH, b"")
        assert set(bench.store.image.nodes["/"].children) == children
    member = bench.client()
    member.connect()
    prove(member, b"kpybroker:secret")
    assert member.ask(1, create("/a"))[0] == 0
    assert set(bench.store.image.nodes["/"].children) == children | {"a"}


def prove(client: Client, credentials: bytes) -> None:
    scheme = b"digest"
    body = struct.pack(f">ii{len(scheme)}si", 0, len(scheme), scheme, len(credentials)) + credentials
    assert client.ask(100, body, xid=-4)[0] == 0
