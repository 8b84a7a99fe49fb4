"""The embedded tree: in this process, in memory, and durable in one SQLite file if it is given one.

One `EmbeddedStore` holds the nodes; each broker of the process opens its own `EmbeddedTree` on it, its session.

Rules:

* operations are applied to memory at once, in the loop; no result and no watch event shows a change before it is
  committed. Reads too wait for the changes that they show;
* commits run off the loop (`run_off_loop`), one at a time, and each takes all pending changes (group commit);
* the sessions of a process end with it: the ephemeral nodes left in the file are deleted when it is opened;
* zxids grow across restarts; session ids are taken from them, so no two are the same;
* a failed commit returns `SystemFailure` to all that waited for it. If the disk was full, the changes stay in memory
  and the next operation tries again; any other failure is final, since a failed fsync must not be retried.

A session here never loses its connection, and expires only when a test calls `expire`. An operation that has nothing to
wait for returns without a checkpoint. No trio here: the caller runs the loop.

Clients over the network have sessions, watches and rules of their own in `server`, which is an `Observer` of the store.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from kpybroker.coordination.image import Access, Change, Image, Watches
from kpybroker.coordination.tree import Listener, Tree
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionEvent, SessionState, TreeEvent, WatchEvent, path_of

if TYPE_CHECKING:
    from kpybroker.coordination.database import Database, Row

T = TypeVar("T")

logger = logging.getLogger("kafka.server.KafkaServer")

TreeRows = tuple["dict[str, Row | None]", int]
"""A tree as `database.write_database` takes it: its nodes, and the last zxid."""

CHUNK = 256
"""Operations performed between two checkpoints: a few milliseconds."""


class RunOffLoop(Protocol):
    """Run a plain function where it may block, and wait for it (`trio.to_thread.run_sync` in the broker)."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


Checkpoint = Callable[[], Awaitable[object]]


class Observer(Protocol):
    """What follows the changes of a store. Neither call may block or raise."""

    def recorded(self, change: Change) -> None:
        """A change was applied to memory, and is not yet saved."""

    def committed(self, zxid: int) -> None:
        """All changes up to `zxid` are saved, and their watch events were sent."""


class _Committer:
    """The changes that are not yet saved, and the commits that save them; used by the loop and by threads."""

    def __init__(self, database: Database, zxid: int) -> None:
        self._database = database
        self._guard = threading.Lock()  # over the two fields below; never held during input or output
        self._rows: dict[str, Row | None] = {}
        self._applied_zxid = zxid
        self._committing = threading.Lock()
        self.committed_zxid = zxid
        self._failure: Exception | None = None

    def add(self, change: Change, image: Image) -> None:
        from kpybroker.coordination.database import row_of

        with self._guard:
            for path in change.touched:
                node = image.nodes.get(path)
                self._rows[path] = None if node is None else row_of(path, node)
            self._applied_zxid = change.zxid

    def commit_up_to(self, zxid: int) -> None:
        """Return once `zxid` is on disk. Raises `SystemFailure`. Runs off the loop."""
        with self._committing:
            if self.committed_zxid >= zxid:
                return  # the commit before this one has saved ours too
            if self._failure is not None:
                raise t.SystemFailure(message=f"the coordination file failed earlier: {self._failure}")
            with self._guard:
                rows, self._rows, applied = self._rows, {}, self._applied_zxid
            try:
                self._database.commit(rows, applied)
                self._keep()
            except Exception as error:
                self._restore(rows, error)
                raise t.SystemFailure(message=f"the coordination file cannot be written: {error}") from error
            self.committed_zxid = applied

    def check_file(self) -> None:
        """Write the file again if it was taken away. Raises `SystemFailure`, after which nothing is saved any more."""
        if self._failure is not None or self._database.is_in_place:
            return
        with self._committing:
            try:
                self._keep()
            except Exception as error:
                self._failure = error
                raise t.SystemFailure(message=f"the coordination file was taken away: {error}") from error

    def _keep(self) -> None:
        if self._database.keep():
            logger.error("The coordination file was taken away while in use, and has been written again, complete")

    def _restore(self, rows: dict[str, Row | None], error: Exception) -> None:
        from kpybroker.coordination.database import is_disk_full

        with self._guard:
            self._rows = {**rows, **self._rows}
        if not is_disk_full(error):
            self._failure = error

    def close(self) -> None:
        with self._committing:
            self._database.close()


class EmbeddedStore:
    """The nodes and sessions of one process. Make it with `open` or `in_memory`."""

    def __init__(
        self,
        image: Image,
        zxid: int,
        committer: _Committer | None,
        run_off_loop: RunOffLoop | None,
        now_ms: Callable[[], int],
        checkpoint: Checkpoint | None,
    ) -> None:
        self._image = image
        self._zxid = zxid  # the last one assigned, to a change or to a session
        self._changed_zxid = zxid  # the last change's
        self._committer = committer
        self._run_off_loop = run_off_loop
        self._now_ms = now_ms
        self._checkpoint = checkpoint
        self._watches = Watches()
        self._sessions: dict[int, EmbeddedTree] = {}
        self._pending_events: deque[tuple[int, EmbeddedTree, TreeEvent]] = deque()  # by zxid; at most one a watch
        self._observers: list[Observer] = []

    @classmethod
    def in_memory(cls, now_ms: Callable[[], int], checkpoint: Checkpoint | None = None) -> EmbeddedStore:
        """A tree that ends with the process."""
        return cls(Image(), 0, None, None, now_ms, checkpoint)

    @classmethod
    def open(
        cls,
        path: Path,
        run_off_loop: RunOffLoop,
        now_ms: Callable[[], int],
        checkpoint: Checkpoint | None = None,
    ) -> EmbeddedStore:
        """Open or create the file: a few milliseconds, in the calling thread. Raises `CoordinationUnavailable`."""
        from kpybroker.coordination.database import open_database

        database, image, zxid = open_database(path)
        store = cls(image, zxid, _Committer(database, zxid), run_off_loop, now_ms, checkpoint)
        for session_id in list(image.owners):
            store._end(session_id)  # its process has ended; saved with the first write
        return store

    def check_file(self) -> None:
        """Write the file again if it was taken away while no one wrote to it: rarely, and then it blocks.

        Raises `SystemFailure`, after which nothing is saved any more.
        """
        if self._committer is not None:
            self._committer.check_file()

    def session(self, timeout_ms: int = 18_000) -> EmbeddedTree:
        """A client of this store, not yet started."""
        return EmbeddedTree(self, timeout_ms)

    def rows(self) -> TreeRows:
        """All nodes as they are now, committed or not."""
        from kpybroker.coordination.database import row_of

        return {path: row_of(path, node) for path, node in self._image.nodes.items()}, self._zxid

    async def close(self) -> None:
        """End all sessions, save, and close the file, which is closed also if saving fails (`SystemFailure`)."""
        try:
            for tree in list(self._sessions.values()):
                await tree.close()
            await self.settle()
        finally:
            if self._committer is not None:
                assert self._run_off_loop is not None
                await self._run_off_loop(self._committer.close)

    # --- for the server of clients over the network

    @property
    def image(self) -> Image:
        """The nodes, committed or not; to be read only."""
        return self._image

    @property
    def changed_zxid(self) -> int:
        """The zxid of the last change, committed or not."""
        return self._changed_zxid

    def observe(self, observer: Observer) -> None:
        """Have `observer` called from now on."""
        self._observers.append(observer)

    def observe_no_more(self, observer: Observer) -> None:
        """Undo `observe`."""
        self._observers.remove(observer)

    def next_session_id(self) -> int:
        """The id of a session that the caller keeps."""
        self._zxid += 1
        return self._zxid

    def end_ephemerals(self, session_id: int) -> None:
        """Delete the ephemeral nodes of a session that the caller kept."""
        self._end(session_id)

    def read_as(self, op: t.ReadOperation, access: Access) -> t.Result:
        """Read for a client with this access; sets no watch. The result is valid only after `settle`."""
        return self._image.read(op, access)

    def write_as(self, op: t.WriteOperation, session_id: int, access: Access | None) -> Change:
        """Apply a write of a client with this access (None: of the tree itself). Raises TreeError."""
        change = self._image.write(op, session_id, self._zxid + 1, self._now_ms(), access)
        self._record(change)
        return change

    # --- for EmbeddedTree

    def begin_session(self, tree: EmbeddedTree) -> int:
        """Register a session of this tree; its id."""
        self._zxid += 1
        self._sessions[self._zxid] = tree
        return self._zxid

    def end_session(self, session_id: int) -> None:
        """Drop the session's watches and delete its ephemeral nodes."""
        if self._sessions.pop(session_id, None) is not None:
            self._watches.forget(session_id)
            self._end(session_id)

    def perform(self, op: t.Operation, session_id: int) -> t.Result:
        """Apply one operation to memory. Its result is valid only after `settle`. Raises TreeError."""
        if isinstance(op, t.Get | t.Exists | t.Children | t.GetAcl):
            result = self._image.read(op)
            if not isinstance(op, t.GetAcl) and op.watch:
                self._watches.register(op, session_id)
            return result
        change = self._image.write(op, session_id, self._zxid + 1, self._now_ms())
        self._record(change)
        return change.result

    async def pause(self) -> None:
        """Run the store's checkpoint, if it has one, so that other tasks can run."""
        if self._checkpoint is not None:
            await self._checkpoint()

    async def settle(self) -> None:
        """Wait until all changes so far are committed, then send their watch events. Raises `SystemFailure`."""
        committer, wanted = self._committer, self._changed_zxid
        if committer is None:
            self._announce(wanted)
            return
        if committer.committed_zxid < wanted:
            assert self._run_off_loop is not None
            await self._run_off_loop(lambda: committer.commit_up_to(wanted))
        self._announce(committer.committed_zxid)

    # --- changes

    def _end(self, session_id: int) -> None:
        self._record(self._image.end_session(session_id, self._zxid + 1, self._now_ms()))

    def _record(self, change: Change) -> None:
        if not change.touched:
            return
        self._zxid = self._changed_zxid = change.zxid
        for observer in self._observers:
            observer.recorded(change)
        for kind, path, _ in change.triggers:
            for session_id in self._watches.fire(kind, path):
                tree = self._sessions[session_id]
                self._pending_events.append((change.zxid, tree, WatchEvent(kind, path, tree.generation)))
        if self._committer is not None:
            self._committer.add(change, self._image)

    def _announce(self, zxid: int) -> None:
        pending = self._pending_events
        while pending and pending[0][0] <= zxid:
            _, tree, event = pending.popleft()
            tree.deliver(event)
        for observer in self._observers:
            observer.committed(zxid)


class EmbeddedTree(Tree):
    """A session on an `EmbeddedStore`; get it from `EmbeddedStore.session`."""

    session_id: int = 0
    generation: int = 0

    def __init__(self, store: EmbeddedStore, timeout_ms: int) -> None:
        self._store = store
        self._timeout_ms = timeout_ms
        self._listener: Listener | None = None
        self._refusal: type[t.SessionExpired] | type[t.TreeClosed] | None = t.TreeClosed  # why nothing is performed

    @property
    def connected(self) -> bool:
        """Whether the session is open: there is no connection to lose."""
        return self._refusal is None

    @property
    def negotiated_timeout_ms(self) -> int:
        """The session timeout that was asked for, which has no effect here."""
        return self._timeout_ms

    def listen(self, listener: Listener) -> None:
        """Set the one listener, before `start`."""
        self._listener = listener

    async def start(self, timeout: float) -> None:
        """Open the first session at once; `timeout` has no effect."""
        assert self.generation == 0, "started twice"
        self._begin()

    async def reopen(self) -> None:
        """Replace an expired session by a new one, at once."""
        if self._refusal is t.SessionExpired:
            self._begin()
        elif self._refusal is t.TreeClosed:
            raise t.TreeClosed

    async def wait_until_connected(self) -> None:
        """Return at once, or raise `SessionExpired` or `TreeClosed`."""
        if self._refusal is not None:
            raise self._refusal

    async def close(self) -> None:
        """End the session, and save the end of its ephemeral nodes."""
        if self._refusal is not t.TreeClosed:
            self._refusal = t.TreeClosed
            self._store.end_session(self.session_id)
            self.session_id = 0
            await self._store.settle()

    async def expire(self) -> None:
        """End the session as ZooKeeper does when the session timeout has passed without a request. For tests."""
        if self._refusal is None:
            self._refusal = t.SessionExpired
            self._store.end_session(self.session_id)
            await self._store.settle()
            self.deliver(SessionEvent(SessionState.EXPIRED, self.generation))

    async def submit_many(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        """Perform all in order, with a commit and a checkpoint after each CHUNK of them."""
        if self._refusal is not None:
            return [self._refusal(path_of(op)) for op in ops]
        results: list[t.Result | t.TreeError] = []
        for start in range(0, len(ops), CHUNK):
            if start:
                await self._store.pause()
            results += [self._perform(op) for op in ops[start : start + CHUNK]]
            try:
                await self._store.settle()
            except t.SystemFailure as failure:
                return [t.SystemFailure(path_of(op), str(failure)) for op in ops]
        return results

    def deliver(self, event: TreeEvent) -> None:
        """Called by the store, in the loop. The pending events of an ended session are dropped."""
        stale = isinstance(event, WatchEvent) and (self._refusal is not None or event.generation != self.generation)
        if self._listener is not None and not stale:
            self._listener(event)

    def _begin(self) -> None:
        self.session_id = self._store.begin_session(self)
        self.generation += 1
        self._refusal = None
        self.deliver(SessionEvent(SessionState.CONNECTED, self.generation))

    def _perform(self, op: t.Operation) -> t.Result | t.TreeError:
        try:
            return self._store.perform(op, self.session_id)
        except t.TreeError as error:
            return error
