"""The contract of `kpybroker.coordination.tree`, kept by the embedded tree (in memory and in its file), by the
fault wrapper with no faults, and by real ZooKeeper."""

from __future__ import annotations

import pytest
import trio

from kpybroker.coordination.tree import create_recursive, delete_recursive
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionState, WatchEvent, WatchType
from tests.coordination.conftest import START_SECONDS_MAX, World, error_of, kinds, one_client

CREATED, DELETED = WatchType.NODE_CREATED, WatchType.NODE_DELETED
CHANGED, CHILDREN = WatchType.NODE_DATA_CHANGED, WatchType.NODE_CHILDREN_CHANGED


# --- nodes and their stat


async def test_a_new_node_has_fresh_versions_and_one_zxid(world: World) -> None:
    async with one_client(world) as (tree, _):
        created = await tree.create("/a", b"abc")
        stat = created.stat
        assert created.path == "/a"
        assert stat is not None
        assert stat == await tree.exists("/a") == (await tree.get("/a")).stat
        assert stat.czxid == stat.mzxid == stat.pzxid > 0
        assert stat.ctime == stat.mtime > 0
        assert (stat.version, stat.cversion, stat.aversion, stat.ephemeral_owner) == (0, 0, 0, 0)
        assert (stat.data_length, stat.num_children) == (3, 0)
        assert (await tree.get("/a")).data == b"abc"


async def test_setting_data_counts_versions_and_moves_mzxid_only(world: World) -> None:
    async with one_client(world) as (tree, _):
        before = (await tree.create("/a", b"1")).stat
        assert before is not None
        after = await tree.set("/a", b"22")
        assert (after.version, after.data_length) == (1, 2)
        assert after.mzxid > before.mzxid
        assert (after.czxid, after.pzxid, after.ctime) == (before.czxid, before.pzxid, before.ctime)
        assert (await tree.set("/a", b"", version=1)).version == 2
        assert (await tree.get("/a")).data == b""


async def test_children_move_the_parents_cversion_and_pzxid(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.create("/p")
        first = (await tree.create("/p/a")).stat
        second = (await tree.create("/p/b")).stat
        assert first is not None
        assert second is not None
        parent = await tree.exists("/p")
        assert parent is not None
        assert (parent.cversion, parent.num_children, parent.version) == (2, 2, 0)
        assert parent.pzxid == second.czxid > first.czxid
        await tree.delete("/p/a")
        after = await tree.exists("/p")
        assert after is not None
        assert (after.cversion, after.num_children) == (3, 1)
        assert after.pzxid > parent.pzxid
        assert after.mzxid == parent.mzxid
        listed = await tree.children("/p")
        assert listed.names == ("b",)
        assert listed.stat == after


async def test_zxids_grow_over_all_sessions(world: World) -> None:
    async with world() as cluster:
        one, _ = await cluster.client()
        two, _ = await cluster.client()
        zxids = []
        for i, tree in enumerate([one, two, one, two]):
            stat = (await tree.create(f"/n{i}")).stat
            assert stat is not None
            zxids.append(stat.czxid)
        assert zxids == sorted(set(zxids))


async def test_data_and_names_are_any_bytes_and_any_letters(world: World) -> None:
    async with one_client(world) as (tree, _):
        data = bytes(range(256)) * 100
        await tree.create("/naïve-名前 <default>", data)
        assert (await tree.get("/naïve-名前 <default>")).data == data
        assert "naïve-名前 <default>" in (await tree.children("/")).names


# --- refusals


async def test_no_data_and_empty_data_are_different(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.create("/null")
        await tree.create("/empty", b"")
        await tree.multi(t.Create("/multi-null", ephemeral=True), t.Create("/multi-empty", b"", sequential=True))
        await tree.create("/changing", b"x")
        found = [(await tree.get(path)).data for path in ("/null", "/empty", "/multi-null", "/multi-empty0000000003")]
        assert found == [None, b"", None, b""]
        for data in (None, b"", b"y", None):
            stat = await tree.set("/changing", data)
            read = await tree.get("/changing")
            assert (read.data, read.stat) == (data, stat)
            assert stat.data_length == len(data or b"")
        await tree.multi(t.SetData("/null", b""), t.SetData("/empty", None))
        assert [(await tree.get(path)).data for path in ("/null", "/empty")] == [b"", None]


async def test_what_is_missing_is_no_node(world: World) -> None:
    async with one_client(world) as (tree, _):
        assert await tree.exists("/x") is None
        for op in (
            t.Get("/x"),
            t.Children("/x"),
            t.SetData("/x", b""),
            t.Delete("/x"),
            t.Create("/x/y"),
            t.GetAcl("/x"),
            t.SetAcl("/x", t.OPEN_ACL_UNSAFE),
        ):
            assert type(await error_of(tree, op)) is t.NoNode, op


async def test_versions_are_compared(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.create("/a")
        await tree.set("/a", b"1", version=0)
        for op in (t.SetData("/a", b"2", version=0), t.SetData("/a", b"2", version=2), t.Delete("/a", version=0)):
            error = await error_of(tree, op)
            assert type(error) is t.BadVersion
            assert error.path == "/a"
        assert (await tree.get("/a")).data == b"1"
        await tree.delete("/a", version=1)
        assert await tree.exists("/a") is None


async def test_other_refusals_have_their_names(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.create("/a")
        await tree.create("/a/b")
        await tree.create("/e", ephemeral=True)
        assert type(await error_of(tree, t.Create("/a"))) is t.NodeExists
        assert type(await error_of(tree, t.Create("/"))) is t.NodeExists
        assert type(await error_of(tree, t.Delete("/a"))) is t.NotEmpty
        assert type(await error_of(tree, t.Create("/e/x"))) is t.NoChildrenForEphemerals
        assert type(await error_of(tree, t.Create("/c", acl=()))) is t.InvalidAcl


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a/./b", "/../b", "/a\0b", "/a\x1f"])
async def test_bad_paths_are_refused(world: World, path: str) -> None:
    async with one_client(world) as (tree, _):
        for op in (t.Get(path), t.Exists(path), t.Children(path), t.Create(path), t.SetData(path, b"")):
            assert type(await error_of(tree, op)) is t.BadArguments, op


async def test_acls_are_kept_with_their_own_version(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.create("/a")
        first = await tree.submit(t.GetAcl("/a"))
        assert isinstance(first, t.NodeAcl)
        assert first.acl == t.OPEN_ACL_UNSAFE
        acl = (t.Acl(t.READ | t.ADMIN, "world", "anyone"), t.Acl(t.ALL_PERMISSIONS, "digest", "u:hash="))
        stat = await tree.submit(t.SetAcl("/a", acl, version=0))
        assert isinstance(stat, t.Stat)
        assert (stat.aversion, stat.version) == (1, 0)
        second = await tree.submit(t.GetAcl("/a"))
        assert isinstance(second, t.NodeAcl)
        assert set(second.acl) == set(acl)
        assert type(await error_of(tree, t.SetAcl("/a", acl, version=0))) is t.BadVersion


# --- sequential and ephemeral nodes


async def test_sequential_names_have_ten_digits_and_are_never_reused(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.create("/q")
        paths = [(await tree.create("/q/n-", sequential=True)).path for _ in range(3)]
        assert paths == [f"/q/n-000000000{i}" for i in range(3)]
        for path in paths:
            await tree.delete(path)
        await tree.create("/q/other")
        assert (await tree.create("/q/n-", sequential=True)).path == "/q/n-0000000004"


async def test_ephemerals_go_with_their_session_when_it_closes(world: World) -> None:
    async with world() as cluster:
        owner, _ = await cluster.client()
        other, log = await cluster.client()
        await owner.create("/p")
        stat = (await owner.create("/p/e", b"x", ephemeral=True)).stat
        assert stat is not None
        assert stat.ephemeral_owner == owner.session_id != 0
        assert owner.session_id != other.session_id
        assert await other.exists("/p/e", watch=True) == stat
        assert (await other.children("/p", watch=True)).names == ("e",)
        await owner.close()
        await log.wait_for_watch_events(2)
        assert sorted(kinds(log), key=str) == sorted([(DELETED, "/p/e"), (CHILDREN, "/p")], key=str)
        assert await other.exists("/p/e") is None
        assert (await other.children("/p")).names == ()
        assert await other.exists("/p") is not None


# --- watches


async def test_watches_fire_once_and_say_what_happened(world: World) -> None:
    async with one_client(world) as (tree, log):
        assert await tree.exists("/a", watch=True) is None
        await tree.create("/a")
        await tree.get("/a", watch=True)
        await tree.set("/a", b"1")
        await tree.set("/a", b"2")
        await tree.children("/a", watch=True)
        await tree.create("/a/b")
        await tree.create("/a/c")
        await tree.exists("/a/b", watch=True)
        await tree.delete("/a/b")
        assert kinds(log) == [(CREATED, "/a"), (CHANGED, "/a"), (CHILDREN, "/a"), (DELETED, "/a/b")]
        assert {event.generation for event in log.watch_events} == {1}


async def test_a_deletion_is_one_event_for_a_watch_of_data_and_children(world: World) -> None:
    async with one_client(world) as (tree, log):
        await tree.create("/a")
        await tree.get("/a", watch=True)
        await tree.exists("/a", watch=True)
        await tree.children("/a", watch=True)
        await tree.delete("/a")
        await tree.create("/a")
        await tree.exists("/a")
        assert kinds(log) == [(DELETED, "/a")]


async def test_reads_that_fail_set_no_watch_but_exists_does(world: World) -> None:
    async with one_client(world) as (tree, log):
        await error_of(tree, t.Get("/a", watch=True))
        await error_of(tree, t.Children("/a", watch=True))
        await tree.create("/a")
        await tree.create("/a/b")
        assert kinds(log) == []
        await tree.exists("/x", watch=True)
        await tree.create("/x")
        assert kinds(log) == [(CREATED, "/x")]


async def test_the_event_of_ones_own_write_precedes_its_result(world: World) -> None:
    async with one_client(world) as (tree, log):
        await tree.create("/a")
        for i in range(20):
            await tree.get("/a", watch=True)
            await tree.set("/a", b"%d" % i)
            assert len(log.watch_events) == i + 1


async def test_the_event_of_anothers_write_precedes_the_data_it_announces(world: World) -> None:
    async with world() as cluster:
        writer, _ = await cluster.client()
        reader, log = await cluster.client()
        await writer.create("/a", b"0")
        for i in range(1, 20):
            await reader.get("/a", watch=True)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(writer.set, "/a", b"%d" % i)
                while (await reader.get("/a")).data != b"%d" % i:
                    await trio.lowlevel.checkpoint()
                assert len(log.watch_events) == i


async def test_no_change_is_missed_by_reading_again_at_every_event(world: World) -> None:
    async with world() as cluster:
        writer, _ = await cluster.client()
        reader, log = await cluster.client()
        await writer.create("/a", b"0")
        last = b"200"

        async def write() -> None:
            for i in range(1, 201, 5):
                written = await writer.submit_many([t.SetData("/a", b"%d" % k) for k in range(i, i + 5)])
                assert [type(result) for result in written] == [t.Stat] * 5

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            reads = 0
            while True:
                reads += 1
                if (await reader.get("/a", watch=True)).data == last:
                    break
                await log.wait_for_watch_events(reads)


# --- many at once


async def test_pipelined_operations_are_performed_in_order_with_a_result_each(world: World) -> None:
    async with one_client(world) as (tree, _):
        results = await tree.submit_many(
            [
                t.Create("/a", b"0"),
                *(t.SetData("/a", b"%d" % i, version=i) for i in range(100)),
                t.SetData("/a", b"", version=7),
                t.Get("/a"),
                t.Delete("/a"),
                t.Exists("/a"),
            ]
        )
        assert len(results) == 105
        assert all(isinstance(a, t.Stat) and a.version == i + 1 for i, a in enumerate(results[1:101]))
        assert type(results[101]) is t.BadVersion
        assert isinstance(results[102], t.NodeData)
        assert results[102].data == b"99"
        assert results[103:] == [None, None]
        assert await tree.submit_many([]) == []


async def test_many_tasks_write_at_once(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.create("/q")
        paths: list[str] = []

        async def create() -> None:
            paths.append((await tree.create("/q/n-", sequential=True)).path)

        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(create)
        assert sorted(paths) == [f"/q/n-{i:010d}" for i in range(100)]


# --- sessions


async def test_an_expired_session_says_so_until_it_is_reopened(world: World) -> None:
    async with world() as cluster:
        tree, log = await cluster.client()
        other, other_log = await cluster.client()
        await tree.create("/p")
        await tree.create("/p/e", ephemeral=True)
        await tree.get("/p", watch=True)
        await other.exists("/p/e", watch=True)
        old_id = tree.session_id
        await tree.expire()
        await log.until(lambda: (SessionState.EXPIRED, 1) in log.states())
        await other_log.wait_for_watch_events(1)
        assert kinds(other_log) == [(DELETED, "/p/e")]
        assert not tree.connected
        assert type(await error_of(tree, t.Get("/p"))) is t.SessionExpired
        assert type(await error_of(tree, t.Create("/q"))) is t.SessionExpired
        with pytest.raises(t.SessionExpired):
            await tree.wait_until_connected()
        with pytest.raises(t.SessionExpired):
            await create_recursive(tree, "/q")

        await tree.reopen()
        await tree.reopen()  # of a session that is alive: nothing
        assert tree.connected
        assert tree.generation == 2
        assert tree.session_id not in (0, old_id)
        assert log.states()[-1] == (SessionState.CONNECTED, 2)
        assert log.states().count((SessionState.EXPIRED, 1)) == 1
        await tree.set("/p", b"1")  # the old session's watch is not set any more
        assert kinds(log) == []
        await tree.get("/p", watch=True)
        await other.set("/p", b"2")
        assert await log.wait_for_watch_events(1) == [WatchEvent(CHANGED, "/p", 2)]


async def test_the_result_is_tree_closed_before_start_and_after_close(world: World) -> None:
    async with world() as cluster:
        tree, log = cluster.unstarted()
        assert (tree.connected, tree.generation, tree.session_id) == (False, 0, 0)
        assert type(await error_of(tree, t.Exists("/"))) is t.TreeClosed
        await tree.start(START_SECONDS_MAX)
        assert (tree.connected, tree.generation) == (True, 1)
        assert tree.session_id != 0
        assert tree.negotiated_timeout_ms > 0
        await tree.wait_until_connected()
        assert log.states() == [(SessionState.CONNECTED, 1)]
        await tree.close()
        await tree.close()
        assert (tree.connected, tree.session_id) == (False, 0)
        assert type(await error_of(tree, t.Exists("/"))) is t.TreeClosed
        with pytest.raises(t.TreeClosed):
            await tree.wait_until_connected()
        with pytest.raises(t.TreeClosed):
            await tree.reopen()


# --- helpers


async def test_paths_are_created_and_deleted_whole(world: World) -> None:
    async with one_client(world) as (tree, _):
        await create_recursive(tree, "/a/b/c", b"x")
        assert (await tree.get("/a/b/c")).data == b"x"
        assert (await tree.get("/a/b")).data is None
        with pytest.raises(t.NodeExists):
            await create_recursive(tree, "/a/b/c")
        await create_recursive(tree, "/a/b/c", fail_if_exists=False)
        await create_recursive(tree, "/a/d")
        assert await delete_recursive(tree, "/a")
        assert await tree.exists("/a") is None
        assert not await delete_recursive(tree, "/a")
