"""kazoo's recipes on the tree that `kpybroker.zookeeper.port` serves; with `--broker=kafka`, on a real ZooKeeper."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoAuthError, RolledBackError
from kazoo.protocol.states import KazooState
from kazoo.recipe.barrier import Barrier, DoubleBarrier
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.partitioner import SetPartitioner
from kazoo.recipe.watchers import ChildrenWatch, DataWatch
from kazoo.security import make_digest_acl

from compat_tests.support.waiting import eventually
from compat_tests.tree.conftest import Connect
from kpybroker.coordination.kazoo_client import ClientOptions, end_session

PATIENCE_S = 60.0


def end(client: KazooClient) -> None:
    """End its session, as an expiry does; kazoo makes a new one."""
    assert client.client_id is not None
    hosts = ",".join(f"{host}:{port}" for host, port in client.hosts)
    end_session(hosts, ClientOptions(), client.client_id)


@contextmanager
def thread(function: Callable[[], Any]) -> Iterator[threading.Thread]:
    running = threading.Thread(target=function, daemon=True)
    running.start()
    yield running
    running.join(PATIENCE_S)
    assert not running.is_alive()


def test_a_lock_is_one_clients_and_goes_on_when_its_session_ends(connect: Connect) -> None:
    one, two = connect(), connect()
    held = one.Lock("/lock", "one")
    assert held.acquire(timeout=PATIENCE_S)
    waiting = two.Lock("/lock", "two")
    assert not waiting.acquire(blocking=False)
    with thread(lambda: waiting.acquire(timeout=PATIENCE_S)):
        eventually(lambda: held.contenders() == ["one", "two"], "two contenders")
        end(one)
    assert waiting.is_acquired
    waiting.release()


def test_readers_share_and_a_semaphore_counts(connect: Connect) -> None:
    one, two = connect(), connect()
    readers = [client.ReadLock("/rw") for client in (one, two)]
    assert all(reader.acquire(timeout=PATIENCE_S) for reader in readers)
    assert not two.WriteLock("/rw").acquire(blocking=False)
    leases = [client.Semaphore("/s", max_leases=2) for client in (one, two, two)]
    assert [lease.acquire(blocking=False) for lease in leases] == [True, True, False]


def test_an_election_moves_on(connect: Connect) -> None:
    leaders: SimpleQueue[str] = SimpleQueue()
    one, two = connect(), connect()
    ends = {name: threading.Event() for name in ("one", "two")}

    def lead(name: str) -> None:
        leaders.put(name)
        ends[name].wait(PATIENCE_S)

    with thread(lambda: one.Election("/elect", "one").run(lead, "one")):
        assert leaders.get(timeout=PATIENCE_S) == "one"
        with thread(lambda: two.Election("/elect", "two").run(lead, "two")):
            eventually(lambda: one.Election("/elect").contenders() == ["one", "two"], "two contenders")
            ends["one"].set()
            assert leaders.get(timeout=PATIENCE_S) == "two"
            ends["two"].set()


def test_queues_give_each_entry_once(connect: Connect) -> None:
    one, two = connect(), connect()
    for number in range(5):
        one.Queue("/queue").put(b"%d" % number)
    assert [client.Queue("/queue").get() for client in (one, two, one, two, one, two)] == [
        b"0", b"1", b"2", b"3", b"4", None,
    ]  # fmt: skip
    one.LockingQueue("/locking").put_all([b"a", b"b"])
    first, second = one.LockingQueue("/locking"), two.LockingQueue("/locking")
    assert first.get(PATIENCE_S) == b"a"
    assert second.get(PATIENCE_S) == b"b"
    assert first.consume()
    end(two)
    assert first.get(PATIENCE_S) == b"b"  # it was not consumed
    assert first.consume()


def test_barriers_hold_and_let_go(connect: Connect) -> None:
    one, two = connect(), connect()
    barrier = Barrier(one, "/barrier")
    barrier.create()
    passed: SimpleQueue[bool] = SimpleQueue()
    with thread(lambda: passed.put(Barrier(two, "/barrier").wait(PATIENCE_S))):
        assert barrier.remove()
    assert passed.get(timeout=PATIENCE_S)

    def meet(client: KazooClient) -> None:
        double = DoubleBarrier(client, "/double", 2)
        double.enter()
        passed.put(True)
        double.leave()

    with thread(lambda: meet(one)):
        assert passed.empty()
        with thread(lambda: meet(two)):
            assert passed.get(timeout=PATIENCE_S)
            assert passed.get(timeout=PATIENCE_S)


def test_a_counter_counts_for_all(connect: Connect) -> None:
    clients = [connect(), connect()]

    def count(client: KazooClient) -> None:
        counter = client.Counter("/count")
        for _ in range(20):
            counter += 1

    with thread(lambda: count(clients[0])), thread(lambda: count(clients[1])):
        pass
    assert clients[0].Counter("/count").value == 40


def test_a_party_knows_who_is_there(connect: Connect) -> None:
    one, two = connect(), connect()
    party = one.Party("/party", "one")
    party.join()
    two.Party("/party", "two").join()
    assert sorted(party) == ["one", "two"]
    end(two)
    eventually(lambda: list(party) == ["one"], "two is gone")


def test_a_set_is_shared_among_its_clients(connect: Connect) -> None:
    one, two = connect(), connect()
    shares = [
        SetPartitioner(client, "/shared", ("a", "b"), identifier=who, time_boundary=0.2)
        for client, who in ((one, "1"), (two, "2"))
    ]

    def settled() -> bool:
        for share in shares:
            if share.release:
                share.release_set()
            elif share.allocating:
                share.wait_for_acquire(0.1)
        return all(share.acquired for share in shares) and sorted(map(list, shares)) == [["a"], ["b"]]

    eventually(settled, "each has one")
    for share in shares:
        share.finish()


def test_watchers_see_each_state_and_survive_the_session(connect: Connect) -> None:
    client, writer = connect(), connect()
    data: SimpleQueue[bytes | None] = SimpleQueue()
    children: SimpleQueue[list[str]] = SimpleQueue()
    DataWatch(client, "/data", lambda value, stat: data.put(value))
    assert data.get(timeout=PATIENCE_S) is None
    writer.create("/data", b"1")
    assert data.get(timeout=PATIENCE_S) == b"1"
    ChildrenWatch(client, "/data", lambda names: children.put(sorted(names)))
    assert children.get(timeout=PATIENCE_S) == []
    writer.create("/data/a")
    assert children.get(timeout=PATIENCE_S) == ["a"]
    lost = threading.Event()
    client.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    end(client)
    assert lost.wait(PATIENCE_S)
    writer.set("/data", b"2")
    while data.get(timeout=PATIENCE_S) != b"2":
        pass
    writer.delete("/data/a")
    while children.get(timeout=PATIENCE_S):
        pass


def test_a_cache_of_a_tree_follows_it(connect: Connect) -> None:
    client, writer = connect(), connect()
    events: SimpleQueue[tuple[int, str | None]] = SimpleQueue()
    cache = TreeCache(client, "/cache")
    cache.listen(lambda event: events.put((event.event_type, event.event_data and event.event_data.path)))
    cache.start()

    def until(kind: int, path: str | None) -> None:
        while events.get(timeout=PATIENCE_S) != (kind, path):
            pass

    until(TreeEvent.INITIALIZED, None)
    writer.create("/cache/a", b"1")
    until(TreeEvent.NODE_ADDED, "/cache/a")
    writer.set("/cache/a", b"2")
    until(TreeEvent.NODE_UPDATED, "/cache/a")
    assert cache.get_data("/cache/a").data == b"2"
    writer.delete("/cache/a")
    until(TreeEvent.NODE_REMOVED, "/cache/a")
    cache.close()


def test_transactions_are_whole(connect: Connect) -> None:
    client = connect()
    transaction = client.transaction()
    transaction.create("/t", b"1")
    transaction.create("/t/s-", sequence=True)
    transaction.set_data("/t", b"2", version=0)
    transaction.check("/t", 1)
    created, below, stat, checked = transaction.commit()
    assert (created, below, stat.version, checked) == ("/t", "/t/s-0000000000", 1, True)
    transaction = client.transaction()
    transaction.delete("/t/s-0000000000")
    transaction.check("/t", 9)
    assert [type(result) for result in transaction.commit()] == [RolledBackError, BadVersionError]
    assert client.exists("/t/s-0000000000")


def test_what_one_login_owns_another_cannot_read(connect: Connect) -> None:
    owner, other = connect(), connect()
    owner.add_auth("digest", "alice:secret")
    owner.create("/private", b"x", acl=[make_digest_acl("alice", "secret", all=True)])
    assert owner.get("/private")[0] == b"x"
    with pytest.raises(NoAuthError):
        other.get("/private")
    with pytest.raises(NoAuthError):
        other.set("/private", b"y")
    other.add_auth("digest", "alice:secret")
    assert other.get("/private")[0] == b"x"
