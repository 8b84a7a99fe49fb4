"""The embedded tree's file: a change is on disk before any result or event shows it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
import trio.testing

from kpybroker.coordination import database
from kpybroker.coordination.embedded import CHUNK, EmbeddedStore, EmbeddedTree
from kpybroker.coordination.tree import CoordinationUnavailable
from kpybroker.core import tree as t
from kpybroker.core.tree import WatchType
from kpybroker.system.files import HAS_POSIX_FILES
from tests.coordination.conftest import EventLog, wall_clock_ms
from tests.support.time_slices import counted_time_slices

T = TypeVar("T")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a tree is kept."""
    return tmp_path / "c.sqlite"


class Gate:
    """Runs commits off the loop, but only while the gate is open."""

    def __init__(self) -> None:
        self.open = trio.Event()
        self.calls = 0

    def shut(self) -> None:
        self.open = trio.Event()

    async def __call__(self, function: Callable[[], T]) -> T:
        self.calls += 1
        await self.open.wait()
        return await trio.to_thread.run_sync(function)


async def started(store: EmbeddedStore) -> tuple[EmbeddedTree, EventLog]:
    tree, log = store.session(), EventLog()
    tree.listen(log)
    await tree.start(timeout=1)
    return tree, log


def opened(path: Path, run_off_loop: Any = trio.to_thread.run_sync) -> EmbeddedStore:
    return EmbeddedStore.open(path, run_off_loop, wall_clock_ms)


@asynccontextmanager
async def open_tree(path: Path, run_off_loop: Any = trio.to_thread.run_sync) -> AsyncIterator[EmbeddedTree]:
    """A session of the tree in a file, closed in order at the end."""
    store = opened(path, run_off_loop)
    tree, _ = await started(store)
    yield tree
    await store.close()


def after_a_crash(path: Path, tmp_path: Path) -> Path:
    """A copy of the file as a crash at this moment would leave it."""
    directory = tmp_path / "after-a-crash"
    directory.mkdir()
    for file in path.parent.glob(path.name + "*"):
        shutil.copy(file, directory)
    return directory / path.name


# --- what survives


async def test_everything_but_ephemerals_survives_a_restart(path: Path) -> None:
    async with open_tree(path) as tree:
        acl = (t.Acl(t.READ, "world", "anyone"), t.Acl(t.ALL_PERMISSIONS, "digest", "a user:hash="))
        await tree.create("/a", b"\0\xff", acl=acl)
        await tree.create("/a/b")
        await tree.create("/a/n-", sequential=True)
        await tree.set("/a", b"new")
        await tree.create("/a/e", ephemeral=True)
        before = await tree.submit_many([t.Get("/a/b"), t.Children("/"), t.GetAcl("/a")])
        parent = await tree.exists("/a")

    async with open_tree(path) as tree:
        after = await tree.submit_many([t.Get("/a/b"), t.Children("/"), t.GetAcl("/a")])
        assert after[:2] == before[:2]
        assert isinstance(after[2], t.NodeAcl)
        assert after[2].acl == acl
        now = await tree.exists("/a")
        assert parent is not None
        assert now is not None
        assert (await tree.children("/a")).names == ("b", "n-0000000001")
        assert (now.version, now.cversion) == (1, parent.cversion + 1)  # the end of the ephemeral is a change
        assert now.czxid == parent.czxid
        assert now.pzxid > parent.pzxid
        created = (await tree.create("/a/n-", sequential=True)).stat
        assert created is not None
        assert created.czxid > now.pzxid
        assert (await tree.exists("/a/n-0000000003")) == created


async def test_a_crash_loses_no_acknowledged_write_and_ends_all_sessions(path: Path, tmp_path: Path) -> None:
    async with open_tree(path) as tree:
        await tree.create("/p")
        await tree.create("/p/kept", b"1")
        await tree.create("/p/e", ephemeral=True)
        session_id = tree.session_id
        crashed = after_a_crash(path, tmp_path)

    async with open_tree(crashed) as tree:
        assert (await tree.children("/p")).names == ("kept",)
        parent = await tree.exists("/p")
        assert parent is not None
        assert parent.cversion == 3
        assert tree.session_id != session_id


async def test_ten_thousand_nodes_load_as_they_were(path: Path) -> None:
    async with open_tree(path) as tree:
        ops = [t.Create("/t"), *(t.Create(f"/t/{i}", b"x" * 50) for i in range(2_000))]
        ops += [t.Create(f"/t/{i}/{k}", b"y") for i in range(2_000) for k in range(4)]
        assert not [a for a in await tree.submit_many(ops) if isinstance(a, t.TreeError)]
    async with open_tree(path) as tree:
        assert len((await tree.children("/t")).names) == 2_000
        assert (await tree.get("/t/1999/3")).data == b"y"


WRITER = """
import sys, time, trio
from pathlib import Path
from kpybroker.coordination.embedded import EmbeddedStore
async def main():
    store = EmbeddedStore.open(Path(sys.argv[1]), trio.to_thread.run_sync, lambda: time.time_ns() // 1_000_000)
    tree = store.session()
    await tree.start(1)
    async def write():
        while True:
            created = await tree.create("/n-", b"x" * 100, sequential=True)
            print(created.path, flush=True)
    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(write)
trio.run(main)
"""


@pytest.mark.not_quick
def test_kill_9_loses_no_acknowledged_write(path: Path) -> None:
    acknowledged: set[str] = set()
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as writer:
            assert writer.stdout is not None
            for _ in range(300):
                acknowledged.add(writer.stdout.readline().strip())
            writer.send_signal(signal.SIGKILL)
            # The last line may be torn; the lines before it were acknowledged.
            acknowledged.update(line.strip() for line in writer.stdout if line.endswith("\n"))
    db, image, _ = database.open_database(path)
    db.close()
    assert len(acknowledged) >= 900
    assert acknowledged <= image.nodes.keys()


@pytest.mark.parametrize(("version", "data"), [(1, "data BLOB NOT NULL"), (2, "data BLOB")])
async def test_a_file_of_an_earlier_format_is_taken_over(path: Path, version: int, data: str) -> None:
    async with open_tree(path) as tree:
        await tree.submit_many([t.Create("/a", b"1"), t.Create("/a/b", b"")])
        before = await tree.submit_many([t.Get("/a"), t.Get("/a/b")])
    with sqlite3.connect(path) as connection:
        (schema,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'node'").fetchone()
        connection.execute("ALTER TABLE node RENAME TO now")
        connection.execute(schema.replace("data BLOB", data).replace(", sum INTEGER NOT NULL", ""))
        columns = [row[1] for row in connection.execute("PRAGMA table_info(node)")]
        connection.execute(f"INSERT INTO node SELECT {', '.join(columns)} FROM now")
        connection.execute("DROP TABLE now")
        connection.execute(f"PRAGMA user_version={version}")
    connection.close()
    async with open_tree(path) as tree:
        assert await tree.submit_many([t.Get("/a"), t.Get("/a/b")]) == before
        await tree.create("/null")
    async with open_tree(path) as tree:
        assert (await tree.get("/null")).data is None


# --- commits


async def test_no_result_and_no_event_precedes_the_commit(path: Path) -> None:
    gate = Gate()
    store = opened(path, gate)
    writer, _ = await started(store)
    reader, log = await started(store)
    gate.open.set()
    await writer.create("/a")
    await reader.get("/a", watch=True)
    gate.shut()
    done: list[str] = []

    async def write() -> None:
        await writer.set("/a", b"1")
        done.append("written")

    async def read() -> None:
        assert (await reader.get("/a")).data == b"1"
        assert [event.type for event in log.watch_events] == [WatchType.NODE_DATA_CHANGED]
        done.append("read")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        assert done == []
        assert log.watch_events == []
        gate.open.set()
    assert sorted(done) == ["read", "written"]
    await store.close()


async def test_waiting_writes_share_one_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[int] = []
    commit = database.Database.commit

    def counted(self: database.Database, rows: Any, zxid: int) -> None:
        commits.append(len(rows))
        commit(self, rows, zxid)

    monkeypatch.setattr(database.Database, "commit", counted)
    gate = Gate()
    async with open_tree(path, gate) as tree:
        async with trio.open_nursery() as nursery:
            for i in range(50):
                nursery.start_soon(tree.create, f"/n{i}")
            await trio.testing.wait_all_tasks_blocked()
            gate.open.set()
        assert commits == [51]  # the nodes and their parent
        await tree.submit_many([t.Create(f"/m{i}") for i in range(50)])
        assert commits == [51, 51]
        calls = gate.calls
        await tree.submit_many([t.Get("/m0"), t.Exists("/m1"), t.Children("/")])
        assert gate.calls == calls  # nothing to wait for


async def test_a_long_batch_lets_others_run(tmp_path: Path) -> None:
    store = EmbeddedStore.in_memory(wall_clock_ms, trio.lowlevel.checkpoint)
    tree, _ = await started(store)
    async with counted_time_slices() as of_others:
        await tree.submit_many([t.Create(f"/n{i}") for i in range(10_000)])
        assert of_others() > 10_000 // CHUNK / 2


async def test_a_full_disk_fails_the_waiting_and_is_survived(path: Path) -> None:
    store = opened(path)
    tree, log = await started(store)
    await tree.create("/a")
    await tree.get("/a", watch=True)
    connection = store._committer._database._connection  # type: ignore[union-attr]
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages}")
    results = await tree.submit_many([t.SetData("/a", bytes(100_000)), t.Get("/a")])
    assert [type(result) for result in results] == [t.SystemFailure, t.SystemFailure]
    assert "full" in str(results[0])
    assert log.watch_events == []
    connection.execute("PRAGMA max_page_count=1000000")
    assert (await tree.get("/a")).stat.version == 1  # the applied change is saved now
    assert len(log.watch_events) == 1
    await store.close()
    _, image, _ = database.open_database(path)
    assert image.nodes["/a"].data == bytes(100_000)


async def test_after_any_other_failure_nothing_is_promised(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(path)
    tree, _ = await started(store)
    await tree.create("/a")

    def broken(self: database.Database, rows: Any, zxid: int) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(database.Database, "commit", broken)
    with pytest.raises(t.SystemFailure, match="disk I/O error"):
        await tree.set("/a", b"1")
    monkeypatch.undo()  # a later fsync could succeed without the lost pages: it is not tried
    with pytest.raises(t.SystemFailure, match="failed earlier"):
        await tree.set("/a", b"2")
    with pytest.raises(t.SystemFailure):
        await tree.get("/a")
    with pytest.raises(t.SystemFailure):
        await store.close()
    reopened = opened(path)  # its lock was released
    await reopened.close()


# --- opening


def refusal(path: Path) -> str:
    with pytest.raises(CoordinationUnavailable) as raised:
        opened(path)
    assert raised.value.place == str(path)
    assert "\n" not in raised.value.cause
    return raised.value.cause


def test_a_damaged_file_is_refused_with_what_to_do(path: Path) -> None:
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    assert "damaged" in refusal(path)


async def test_a_changed_row_is_refused(path: Path, tmp_path: Path) -> None:
    async with open_tree(path) as tree:
        await tree.create("/a", b"written")
    for statement in ("UPDATE node SET data = x'00' WHERE path = '/a'", "UPDATE latest SET zxid = 1"):
        changed = tmp_path / "changed.sqlite"
        shutil.copy(path, changed)
        with sqlite3.connect(changed) as connection:
            connection.execute(statement)
        connection.close()
        assert "damaged" in refusal(changed)


async def test_a_torn_page_or_a_lost_parent_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    async with open_tree(path) as tree:
        await tree.submit_many(
            [t.Create("/a"), t.Create("/a/b"), *(t.Create(f"/n{i}", bytes(500)) for i in range(100))]
        )
    lost = tmp_path / "lost.sqlite"
    shutil.copy(path, lost)
    with sqlite3.connect(lost) as connection:
        connection.execute("DELETE FROM node WHERE path = '/a'")
    connection.close()
    assert "damaged" in refusal(lost)
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 3] = bytes(4096)
    path.write_bytes(data)
    assert "damaged" in refusal(path)


async def test_a_file_in_use_a_newer_file_and_a_missing_directory_are_refused(path: Path, tmp_path: Path) -> None:
    store = opened(path)
    assert "in use by another process" in refusal(path)
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=4")
    connection.close()
    assert "format version 4" in refusal(path)
    assert "cannot be opened" in refusal(tmp_path / "none" / "c.sqlite")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    assert "format version 0" in refusal(other)


# --- a file that is taken away


def _content(path: Path) -> bytes:
    return path.read_bytes()


def _replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


async def _taken_away_and_written_to(path: Path, take: Callable[[], None]) -> None:
    async with open_tree(path) as tree:
        await tree.submit_many([t.Create("/a", b"1"), t.Create("/b", b"2")])
        take()
        await tree.create("/c", b"3")
        await tree.delete("/b")
        await tree.create("/d", b"4")
    async with open_tree(path) as tree:
        assert sorted((await tree.children("/")).names) == ["a", "c", "d"]
        assert (await tree.get("/a")).data == b"1"
    with sqlite3.connect(path) as connection:
        (stamp,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    assert (stamp, version) == (database.APPLICATION_ID, database.FORMAT_VERSION)


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="an open file cannot be removed there")
@pytest.mark.parametrize("suffixes", [("",), ("-wal",), ("", "-wal")])
@pytest.mark.parametrize("is_moved", [False, True])
async def test_nothing_is_acknowledged_that_is_in_no_file(
    path: Path, suffixes: Sequence[str], is_moved: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def take() -> None:
        for suffix in suffixes:
            file = path.with_name(path.name + suffix)
            file.rename(path.with_name(f"elsewhere{suffix}")) if is_moved else file.unlink()

    await _taken_away_and_written_to(path, take)
    assert caplog.text.count("was taken away while in use, and has been written again") == 1


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="an open file cannot be removed there")
async def test_a_file_that_is_taken_away_from_an_idle_tree_is_written_again(path: Path) -> None:
    store = opened(path)
    tree = store.session()
    await tree.start(0)
    await tree.create("/a", b"1")
    store.check_file()
    os.unlink(path)
    store.check_file()
    copied = _content(path)
    await store.close()
    assert copied
    async with open_tree(path) as again:
        assert (await again.get("/a")).data == b"1"


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="an open file cannot be removed there")
async def test_another_file_in_its_place_is_left_alone_and_ends_all_writing(path: Path) -> None:
    store = opened(path)
    tree = store.session()
    await tree.start(0)
    await tree.create("/a", b"1")
    _replace(path, b"of someone else")
    with pytest.raises(t.SystemFailure, match="was replaced by another file"):
        await tree.create("/b")
    store.check_file()  # reported once
    with pytest.raises(t.SystemFailure, match="failed earlier"):
        await tree.create("/c")
    with suppress(t.SystemFailure):
        await store.close()
    assert _content(path) == b"of someone else"


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="making a link takes a privilege there")
@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
async def test_no_symbolic_link_is_followed_to_it(path: Path, suffix: str) -> None:
    async with open_tree(path) as tree:
        await tree.create("/a", b"1")
    victim, file = path.with_name("victim"), path.with_name(path.name + suffix)
    file.rename(victim) if file.exists() else victim.write_bytes(b"kept")
    before = victim.read_bytes()
    file.symlink_to(victim)
    with pytest.raises(CoordinationUnavailable, match="is a symbolic link"):
        opened(path)
    assert victim.read_bytes() == before
