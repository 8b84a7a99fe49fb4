"""The contract of the tree, of all four kinds: what a multi is, and what it is when it fails."""

from __future__ import annotations

from kpybroker.core import tree as t
from kpybroker.core.tree import WatchType
from tests.coordination.conftest import World, error_of, kinds, one_client


async def test_a_multi_happens_whole_under_one_zxid(world: World) -> None:
    async with one_client(world) as (tree, log):
        await tree.create("/epoch", b"1")
        await tree.create("/old")
        await tree.get("/old", watch=True)
        results = await tree.multi(
            t.Check("/epoch", 0),
            t.Create("/new", b"n"),
            t.Create("/new/child-", b"c", sequential=True),
            t.SetData("/epoch", b"2", version=0),
            t.Delete("/old"),
        )
        assert results[0] is None
        assert results[1] == t.Created("/new", None)
        assert results[2] == t.Created("/new/child-0000000000", None)
        assert isinstance(results[3], t.Stat)
        assert results[3].version == 1
        assert results[4] is None
        assert kinds(log) == [(WatchType.NODE_DELETED, "/old")]
        new, epoch = await tree.exists("/new"), await tree.exists("/epoch")
        assert new is not None
        assert epoch is not None
        assert new.czxid == epoch.mzxid == new.pzxid
        assert await tree.multi() == ()


async def test_a_multi_that_fails_leaves_nothing_and_says_which_part(world: World) -> None:
    async with one_client(world) as (tree, log):
        await tree.create("/epoch", b"1")
        await tree.create("/p")
        await tree.create("/p/kept", b"k")
        before = await tree.exists("/p", watch=True)
        await tree.children("/p", watch=True)
        await tree.exists("/p/new", watch=True)
        error = await error_of(
            tree,
            t.Multi(
                (
                    t.Create("/p/new"),
                    t.SetData("/p/kept", b"changed"),
                    t.Create("/p/e", ephemeral=True),
                    t.Delete("/p/kept"),
                    t.Check("/epoch", 5),
                    t.Delete("/p"),
                )
            ),
        )
        assert isinstance(error, t.MultiFailed)
        assert error.index == 4
        assert type(error.error) is t.BadVersion
        assert error.error.path == "/epoch"
        names = ["RolledBack"] * 4 + ["BadVersion", "RuntimeInconsistency"]
        assert [type(part).__name__ for part in error.errors] == names
        assert await tree.exists("/p") == before
        assert (await tree.children("/p")).names == ("kept",)
        kept = await tree.get("/p/kept")
        assert (kept.data, kept.stat.version) == (b"k", 0)
        assert kinds(log) == []
        await tree.create("/p/n-", sequential=True)
        assert "n-0000000001" in (await tree.children("/p")).names


async def test_the_parts_of_a_multi_see_each_other(world: World) -> None:
    async with one_client(world) as (tree, _):
        await tree.multi(t.Create("/a"), t.Create("/a/b"), t.SetData("/a", b"1", 0), t.Check("/a", 1))
        await tree.multi(t.Delete("/a/b"), t.Delete("/a"), t.Create("/a", b"again"))
        assert (await tree.get("/a")).data == b"again"
        error = await error_of(tree, t.Multi((t.Create("/x"), t.Create("/x"))))
        assert isinstance(error, t.MultiFailed)
        assert type(error.error) is t.NodeExists
        error = await error_of(tree, t.Multi((t.Create("/y"), t.Delete("/a/none"))))
        assert isinstance(error, t.MultiFailed)
        assert type(error.error) is t.NoNode
        assert await tree.exists("/y") is None
