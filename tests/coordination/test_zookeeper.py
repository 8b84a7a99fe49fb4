"""What only a client of real ZooKeeper has: broken connections, unknown outcomes, chroots, credentials."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from kazoo.client import KazooClient
from kazoo.protocol.serialization import GetData

from kpybroker.coordination import zookeeper as adapter
from kpybroker.coordination.kazoo_client import ClientOptions, Fired, _Handler, end_session
from kpybroker.coordination.tree import CoordinationUnavailable, retry_until_connected
from kpybroker.coordination.zookeeper import ZooKeeperTree, split_connect
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionState, WatchType
from tests.coordination.conftest import SESSION_TIMEOUT_MS, START_SECONDS_MAX, EventLog, chroot_of
from tests.support.network.ports import free_port
from tests.support.network.proxy import Proxy, tcp_proxy
from tests.support.programs.zookeeper import ZooKeeperServer, zookeeper

OPTIONS = ClientOptions(SESSION_TIMEOUT_MS)
OWNER = replace(OPTIONS, auth=(("digest", "kafka:secret"),))
CONNECTED, DISCONNECTED, EXPIRED = SessionState.CONNECTED, SessionState.DISCONNECTED, SessionState.EXPIRED


@asynccontextmanager
async def client(
    connect: str, options: ClientOptions = OPTIONS, **settings: Any
) -> AsyncIterator[tuple[ZooKeeperTree, EventLog]]:
    tree, log = ZooKeeperTree(connect, options, **settings), EventLog()
    tree.listen(log)
    await tree.start(START_SECONDS_MAX)
    try:
        yield tree, log
    finally:
        with trio.CancelScope(shield=True):
            await tree.close()


@asynccontextmanager
async def behind_proxy(
    server: ZooKeeperServer, options: ClientOptions = OPTIONS
) -> AsyncIterator[tuple[Proxy, ZooKeeperTree, EventLog, ZooKeeperTree]]:
    """A client behind a proxy, and another that is not, in one chroot."""
    chroot = split_connect(chroot_of(server))[1]
    async with (
        tcp_proxy(server.host, server.port) as proxy,
        client(proxy.address + chroot, options) as (tree, log),
        client(server.address + chroot) as (other, _),
    ):
        yield proxy, tree, log, other
        proxy.fix()


# --- broken connections


async def test_missed_changes_are_announced_after_the_reconnection(
    zookeeper_server_shared: ZooKeeperServer,
) -> None:
    async with behind_proxy(zookeeper_server_shared) as (proxy, tree, log, other):
        for path in ("/changed", "/deleted", "/recreated", "/parent", "/same"):
            await tree.create(path)
            await tree.get(path, watch=True)
        await tree.exists("/created", watch=True)
        await tree.exists("/absent", watch=True)
        await tree.children("/parent", watch=True)
        await tree.children("/same", watch=True)
        await tree.children("/deleted", watch=True)
        session_id = tree.session_id
        proxy.cut()
        await log.until(lambda: not tree.connected)
        changes = await other.submit_many(
            [
                t.SetData("/changed", b"1"),
                t.Delete("/deleted"),
                t.Delete("/recreated"),
                t.Create("/recreated"),
                t.Create("/parent/child"),
                t.Create("/created"),
            ]
        )
        assert not [result for result in changes if isinstance(result, t.TreeError)]
        proxy.fix()
        await tree.wait_until_connected()
        await tree.exists("/")  # the events precede any result
        assert {(event.type, event.path) for event in log.watch_events} == {
            (WatchType.NODE_DATA_CHANGED, "/changed"),
            (WatchType.NODE_DELETED, "/deleted"),
            (WatchType.NODE_DATA_CHANGED, "/recreated"),
            (WatchType.NODE_CHILDREN_CHANGED, "/parent"),
            (WatchType.NODE_CREATED, "/created"),
        }
        assert len(log.watch_events) == 5
        assert log.states() == [(CONNECTED, 1), (DISCONNECTED, 1), (CONNECTED, 1)]
        assert tree.session_id == session_id

        log.heard.clear()  # the watches that missed nothing are still set, and the others are not
        for path in ("/same", "/parent", "/changed", "/recreated", "/created"):
            await tree.set(path, b"2")
        await tree.create("/same/child")
        await tree.create("/absent")
        assert [(event.type, event.path) for event in log.watch_events] == [
            (WatchType.NODE_DATA_CHANGED, "/same"),
            (WatchType.NODE_DATA_CHANGED, "/parent"),
            (WatchType.NODE_CHILDREN_CHANGED, "/same"),
            (WatchType.NODE_CREATED, "/absent"),
        ]


async def test_a_lost_response_is_connection_loss_of_what_was_applied(
    zookeeper_server_shared: ZooKeeperServer,
) -> None:
    async with behind_proxy(zookeeper_server_shared) as (proxy, tree, _, other):
        await tree.create("/a")
        proxy.lose("responses")
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                (result,) = await tree.submit_many([t.SetData("/a", b"1")])
                assert type(result) is t.ConnectionLoss

            nursery.start_soon(write)
            await proxy.until_lost("responses")
            proxy.cut()
        assert (await other.get("/a")).data == b"1"


async def test_a_lost_request_is_connection_loss_of_what_was_not_applied(
    zookeeper_server_shared: ZooKeeperServer,
) -> None:
    async with behind_proxy(zookeeper_server_shared) as (proxy, tree, _, other):
        await tree.create("/a")
        proxy.lose("requests")
        results: list[t.Result | t.TreeError] = []
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                results.extend(await tree.submit_many([t.SetData("/a", b"1"), t.Create("/b")]))

            nursery.start_soon(write)
            await proxy.until_lost("requests")
            proxy.cut()
        assert [type(result) for result in results] == [t.ConnectionLoss, t.ConnectionLoss]
        assert (await other.get("/a")).data is None
        assert await other.exists("/b") is None


async def test_operations_end_at_once_while_there_is_no_connection(
    zookeeper_server_shared: ZooKeeperServer,
) -> None:
    async with behind_proxy(zookeeper_server_shared) as (proxy, tree, log, _):
        proxy.cut()
        await log.until(lambda: not tree.connected)
        (result,) = await tree.submit_many([t.Exists("/")])
        assert type(result) is t.ConnectionLoss
        async with trio.open_nursery() as nursery:

            async def retry() -> None:
                (created,) = await retry_until_connected(tree, [t.Create("/a")])
                assert isinstance(created, t.Created)

            nursery.start_soon(retry)
            await trio.testing.wait_all_tasks_blocked(0.01)
            proxy.fix()
        assert await tree.exists("/a") is not None


async def test_a_session_expires_when_the_server_receives_nothing_from_it(
    zookeeper_server_shared: ZooKeeperServer,
) -> None:
    async with behind_proxy(zookeeper_server_shared, ClientOptions(2000)) as (proxy, tree, log, other):
        assert tree.negotiated_timeout_ms == 2000
        other_log = EventLog()
        other.listen(other_log)
        await tree.create("/e", ephemeral=True)
        await other.exists("/e", watch=True)
        proxy.cut()
        await other_log.wait_for_watch_events(1)
        assert tree.generation == 1  # it cannot know yet
        proxy.fix()
        await log.until(lambda: (EXPIRED, 1) in log.states())
        await tree.reopen()
        (created,) = await retry_until_connected(tree, [t.Create("/e", ephemeral=True)])
        assert isinstance(created, t.Created)
        states = log.states()
        assert states[states.index((EXPIRED, 1)) + 1] == (CONNECTED, 2)


def test_a_session_is_taken_over_and_closed_without_a_response_in_between() -> None:
    """Its owner reconnects at once, and would take it back from a client that waited for a response."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        host, port = listener.getsockname()
        ending = pool.submit(end_session, f"{host}:{port}", ClientOptions(10_000), (7, bytes(16)))
        connection, _ = listener.accept()
        connection.settimeout(30)
        with connection, connection.makefile("rb") as requests:
            take_over, close = (requests.read(int.from_bytes(requests.read(4), "big")) for _ in range(2))
        ending.result(120)
    assert take_over[16:24] == (7).to_bytes(8, "big")
    assert close == struct.pack(">ii", 1, -11)


async def test_a_restarted_server_finds_the_session_alive(
    own_server: ZooKeeperServer,
) -> None:
    async with client(own_server.address) as (tree, log):
        await tree.create("/e", ephemeral=True)
        await tree.get("/e", watch=True)
        own_server.kill()
        await log.until(lambda: not tree.connected)
        await trio.to_thread.run_sync(own_server.restart)
        await tree.wait_until_connected()
        await tree.set("/e", b"1")
        assert log.states() == [(CONNECTED, 1), (DISCONNECTED, 1), (CONNECTED, 1)]
        assert len(log.watch_events) == 1


async def test_a_server_that_swallows_the_first_request_is_asked_again_while_the_session_lasts(
    zookeeper_server_shared: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ZooKeeper 3.8 does for a moment when it starts."""
    wait, waits = _Handler.wait, list[float]()

    def swallowing(self: _Handler, readers: Any, writers: Any, others: Any, timeout: float) -> Any:
        if len(readers) == 1:
            waits.append(timeout)
            if len(waits) == 1:
                return [], [], []
        return wait(self, readers, writers, others, timeout)

    monkeypatch.setattr(_Handler, "wait", swallowing)
    async with client(zookeeper_server_shared.address):
        assert len(waits) > 1
        assert max(waits) == SESSION_TIMEOUT_MS / 1000 / 3


async def test_an_event_follows_the_response_that_has_set_its_watch(
    zookeeper_server_shared: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the loop gets no processor between sending a request and what it does next: kazoo's thread has then
    read the response, and the event of a change that was made a moment later.
    """
    call = KazooClient._call
    connect = chroot_of(zookeeper_server_shared)
    path = split_connect(connect)[1] + "/a"
    async with client(connect) as (tree, log):
        await tree.create("/a", b"0")
        writer = KazooClient(zookeeper_server_shared.address)
        writer.start(START_SECONDS_MAX)

        def slow_call(self: KazooClient, request: Any, result: Any) -> None:
            call(self, request, result)
            if isinstance(request, GetData):
                until(lambda: bool(self._data_watchers.get(path)))
                writer.set(path, b"1")
                until(lambda: any(isinstance(signal, Fired) for _, signal in tree._signals))

        monkeypatch.setattr(KazooClient, "_call", slow_call)
        try:
            assert (await tree.get("/a", watch=True)).data == b"0"
            (event,) = await log.wait_for_watch_events(1)
            assert (event.type, event.path) == (WatchType.NODE_DATA_CHANGED, "/a")
        finally:
            writer.stop()
            writer.close()


def until(condition: Callable[[], bool]) -> None:
    """Keep the loop from running until another thread has made it so."""
    end = time.monotonic() + START_SECONDS_MAX
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# --- starting and closing


async def test_an_unreachable_ensemble_is_named_with_the_cause() -> None:
    tree = ZooKeeperTree("127.0.0.1:1/kafka")
    with pytest.raises(CoordinationUnavailable) as raised:
        await tree.start(timeout=1)
    assert raised.value.place == "127.0.0.1:1/kafka"
    assert "no connection within 1 s" in raised.value.cause
    assert "refused" in raised.value.cause.lower()
    assert not tree.connected


@pytest.mark.parametrize("connect", ["", "/kafka", "h:1/a/", "h:1//a"])
async def test_a_malformed_connect_string_is_refused(connect: str) -> None:
    with pytest.raises(CoordinationUnavailable):
        ZooKeeperTree(connect)


async def test_closing_leaves_no_thread_and_ends_what_is_under_way(
    zookeeper_server_shared: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "CLOSE_SECONDS_MAX", 0.2)
    before = set(kazoo_threads())  # those of other tests' fixtures
    async with behind_proxy(zookeeper_server_shared) as (proxy, tree, _, other):
        await other.close()
        proxy.lose("requests")
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                (result,) = await tree.submit_many([t.Exists("/")])
                assert type(result) is t.ConnectionLoss

            nursery.start_soon(read)
            await proxy.until_lost("requests")
            await tree.close()
        proxy.cut()
        await trio.to_thread.run_sync(join, [thread for thread in kazoo_threads() if thread not in before])


def kazoo_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "zk_loop" in thread.name]


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


async def test_the_server_decides_the_session_timeout(zookeeper_server_shared: ZooKeeperServer) -> None:
    async with client(zookeeper_server_shared.address, ClientOptions(100_000)) as (tree, _):
        assert tree.negotiated_timeout_ms == 60_000


# --- chroot, sizes, credentials


async def test_a_chroot_is_created_and_is_the_root_of_all_paths(zookeeper_server_shared: ZooKeeperServer) -> None:
    chroot = split_connect(chroot_of(zookeeper_server_shared))[1] + "/kafka/one"
    async with (
        client(zookeeper_server_shared.address + chroot) as (inside, log),
        client(zookeeper_server_shared.address) as (outside, _),
    ):
        assert (await inside.children("/", watch=True)).names == ()
        assert (await inside.create("/a", b"x")).path == "/a"
        assert (await inside.create("/a/n-", sequential=True)).path == "/a/n-0000000000"
        await inside.get("/a", watch=True)
        await outside.set(f"{chroot}/a", b"y")
        assert [event.path for event in await log.wait_for_watch_events(2)] == ["/", "/a"]
        assert (await inside.multi(t.Create("/b"), t.Create("/b/n-", sequential=True)))[1] == t.Created(
            "/b/n-0000000000", None
        )
        error = (await inside.submit_many([t.Get("/none")]))[0]
        assert isinstance(error, t.NoNode)
        assert error.path == "/none"
        assert (await outside.get(f"{chroot}/a")).data == b"y"


async def test_too_large_a_request_is_refused_here(zookeeper_server_shared: ZooKeeperServer) -> None:
    async with client(chroot_of(zookeeper_server_shared)) as (tree, _):
        results = await tree.submit_many(
            [
                t.Create("/a", bytes(adapter.JUTE_MAX_BUFFER + 1)),
                t.Multi((t.Create("/a", bytes(3 << 20)), t.Create("/b", bytes(3 << 20)))),
                t.Create("/a", bytes(900_000)),
            ]
        )
        assert [type(result) for result in results] == [t.TooLarge, t.TooLarge, t.Created]
        # Larger than the server's own limit: it closes the connection without a response.
        assert type((await tree.submit_many([t.SetData("/a", bytes(2 << 20))]))[0]) is t.ConnectionLoss
        await tree.wait_until_connected()
        assert (await tree.get("/a")).stat.version == 0


async def test_credentials_and_default_acls(zookeeper_server_shared: ZooKeeperServer) -> None:
    connect = chroot_of(zookeeper_server_shared)

    def default_acl(path: str) -> tuple[t.Acl, ...]:
        return t.OPEN_ACL_UNSAFE if path == "/open" else t.CREATOR_ALL_ACL + t.READ_ACL_UNSAFE

    async with (
        client(connect) as (stranger, _),
        client(connect, OWNER, default_acl=default_acl) as (owner, _),
    ):
        await owner.create("/mine", b"x")
        await owner.multi(t.Create("/mine/too"), t.Create("/open"))
        assert (await stranger.get("/mine")).data == b"x"
        for op in (t.SetData("/mine", b""), t.Create("/mine/x"), t.Delete("/mine/too"), t.SetData("/mine/too", b"")):
            assert type((await stranger.submit_many([op]))[0]) is t.NoAuth
        await stranger.set("/open", b"y")
        await owner.set("/mine", b"z")
        assert type((await stranger.submit_many([t.Create("/a", acl=t.CREATOR_ALL_ACL)]))[0]) is t.InvalidAcl


async def test_credentials_hold_after_a_reconnection(zookeeper_server_shared: ZooKeeperServer) -> None:
    async with behind_proxy(zookeeper_server_shared, OWNER) as (proxy, tree, log, _):
        await tree.create("/mine", acl=t.CREATOR_ALL_ACL)
        proxy.cut()
        await log.until(lambda: not tree.connected)
        proxy.fix()
        await tree.wait_until_connected()
        await tree.set("/mine", b"1")


# --- TLS


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """(a PKCS 12 key store for the server, its certificate for the client), made with the JDK's keytool."""
    store, certificate = directory / "server.p12", directory / "ca.pem"
    common = ["keytool", "-keystore", str(store), "-storepass", "secret1", "-alias", "zk"]
    key = ["-genkeypair", "-keyalg", "EC", "-storetype", "PKCS12", "-dname", "CN=zk", "-ext", "san=ip:127.0.0.1"]
    subprocess.run([*common, *key], check=True, capture_output=True)
    subprocess.run([*common, "-exportcert", "-rfc", "-file", str(certificate)], check=True, capture_output=True)
    return store, certificate


@contextmanager
def tls_server(directory: Path) -> Iterator[tuple[str, Path]]:
    """(address of the TLS port, certificate to trust)."""
    store, certificate = make_certificate(directory)
    secure_port = free_port()
    settings = {
        "secureClientPort": str(secure_port),
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl__keyStore__location": str(store),
        "ssl__keyStore__password": "secret1",
        "ssl__clientAuth": "none",
    }
    with zookeeper(directory / "zookeeper", **settings):
        yield f"127.0.0.1:{secure_port}", certificate


async def test_the_tree_over_tls(tmp_path: Path) -> None:
    with tls_server(tmp_path) as (address, certificate):
        context = ssl.create_default_context(cafile=certificate)
        async with client(f"{address}/kafka", replace(OPTIONS, tls=context)) as (tree, log):
            await tree.get("/", watch=True)
            await tree.set("/", b"x" * 100_000)
            assert len(log.watch_events) == 1
            assert (await tree.get("/")).data == b"x" * 100_000
        with pytest.raises(CoordinationUnavailable) as raised:
            await ZooKeeperTree(address, ClientOptions(tls=ssl.create_default_context())).start(timeout=1)
        assert "certificate" in raised.value.cause.lower()


@pytest.mark.parametrize("limit", [1, 3])
async def test_the_requests_in_flight_are_limited(limit: int, own_server: ZooKeeperServer) -> None:
    async with client(own_server.address, max_in_flight_requests=limit) as (tree, _):
        under_way: list[int] = []
        assert tree._client is not None
        send = tree._client.send

        def counted(op: t.Operation, ticket: object) -> None:
            under_way.append(len(tree._sent))
            send(op, ticket)

        tree._client.send = counted  # type: ignore[method-assign]
        results = await tree.submit_many([t.Create("/a"), *(t.SetData("/a", b"%d" % n) for n in range(20))])
        assert [result.version for result in results[1:] if isinstance(result, t.Stat)] == list(range(1, 21))
        assert max(under_way) == limit
        # Operations that wait when the connection breaks get their result too, and are not sent.
        sent = len(under_way)
        own_server.pause()
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                results[:] = await tree.submit_many([t.SetData("/a", b"x")] * 20)

            nursery.start_soon(write)
            await trio.testing.wait_all_tasks_blocked()
            own_server.kill()
        assert {type(result) for result in results} == {t.ConnectionLoss}
        assert len(under_way) == sent + limit
