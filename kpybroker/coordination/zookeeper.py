"""The tree on real ZooKeeper, through kazoo: the only place where kazoo's thread meets the loop.

Rules (those of the contract, and how they are kept here):

* kazoo's thread appends signals to one queue and wakes the loop (``TrioToken.run_sync_soon``); the loop takes them out
  in order: results, watch events and states cannot overtake each other;
* each client of kazoo is one session, and is dropped when that session ends: its signals carry it, and those of a
  former session are ignored;
* the server loses watches with the connection, and kazoo does not renew them. After a reconnection every watch is set
  again by reading its node, before anything else is sent; a node that differs from the one that the caller saw fires
  the watch (Java's client requests the same with SetWatches);
* while there is no connection, operations return `ConnectionLoss` at once; those in flight return it too, and their
  outcome is unknown;
* the chroot of the connect string is put before every path here, not by kazoo, and is created if it is missing
  (KafkaZkClient.createChrootIfNecessary).

Nothing in the loop blocks: the two calls that could (they stop a client) run in a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import trio

from kpybroker.coordination.client_watches import ClientWatches
from kpybroker.coordination.kazoo_client import (
    Client,
    ClientOptions,
    Fired,
    Response,
    Signal,
    StateChange,
    end_session,
    logger,
    tree_result,
)
from kpybroker.coordination.tree import CoordinationUnavailable, Listener, Tree
from kpybroker.core import tree as t
from kpybroker.core.tree import (
    Acl,
    SessionEvent,
    SessionState,
    Stat,
    TreeEvent,
    WatchEvent,
    WatchType,
    check_path,
    parent_path,
    path_of,
)
from kpybroker.metrics.histogram import Histogram

JUTE_MAX_BUFFER = 4 * 1024 * 1024
"""Bytes, as in Kafka's client; a ZooKeeper server has 1 MiB by default."""
MAX_IN_FLIGHT_REQUESTS = 10
"""Kafka's `zookeeper.max.in.flight.requests`: further requests wait here."""
CLOSE_UNCONNECTED_SECONDS_MAX = 0.5
CLOSE_SECONDS_MAX = 6.0
DEFAULT_OPTIONS = ClientOptions()


class _Batch:
    """The operations of one `submit_many`, finished one by one."""

    __slots__ = ("done", "left", "results")

    def __init__(self, size: int) -> None:
        self.results: list[t.Result | t.TreeError] = [None] * size
        self.left = size
        self.done = trio.Event()

    def finish(self, index: int, result: t.Result | t.TreeError) -> None:
        self.results[index] = result
        self.left -= 1
        if self.left == 0:
            self.done.set()


@dataclass(frozen=True, slots=True, eq=False)
class _Ticket:
    """A caller's operation. `connection` counts the session's connections at the time it was sent."""

    op: t.Operation
    batch: _Batch
    index: int
    connection: int


@dataclass(frozen=True, slots=True)
class _Rewatch:
    """A read that sets a watch again; `seen` is the stat that the caller knows (None: the node was missing)."""

    op: t.Exists | t.Children
    seen: Stat | None


class ZooKeeperTree(Tree):
    """A client of the ensemble at `connect` (host:port,...[/chroot]).

    `default_acl` gives the ACL of a creation that names none, by path (`zookeeper.set.acl`).
    """

    session_id: int = 0
    generation: int = 0

    def __init__(
        self,
        connect: str,
        options: ClientOptions = DEFAULT_OPTIONS,
        *,
        default_acl: Callable[[str], tuple[Acl, ...]] = lambda path: t.OPEN_ACL_UNSAFE,
        max_in_flight_requests: int = MAX_IN_FLIGHT_REQUESTS,
        jute_max_buffer: int = JUTE_MAX_BUFFER,
    ) -> None:
        self._hosts, self._chroot = split_connect(connect)
        self._connect = connect
        self._options = options
        self._default_acl = default_acl
        self._max_in_flight_requests = max_in_flight_requests
        self._jute_max_buffer = jute_max_buffer
        self._listener: Listener | None = None
        self._latency = Histogram(0.001)
        self.latency: Histogram | None = self._latency

        self._client: Client | None = None
        self._refusal: type[t.TreeError] | None = t.TreeClosed  # why no operation is performed
        self._connected = False
        self._connections = 0
        self._state_changed = trio.Event()
        self._opening = trio.Lock()

        self._token: trio.lowlevel.TrioToken | None = None
        self._sent: dict[_Ticket, float] = {}  # in flight, and since when
        self._waiting: deque[tuple[t.Operation, _Ticket]] = deque()  # until fewer are in flight
        self._signals: deque[tuple[Client, Signal]] = deque()  # bounded by the requests in flight and the watches

        self._watches = ClientWatches()
        self._rewatches = 0
        self._deferred: list[tuple[Client, Response]] = []  # until all watches are set again

    # --- the contract

    @property
    def connected(self) -> bool:
        """Whether there is a session with a connection, as the loop knows it."""
        return self._connected

    @property
    def negotiated_timeout_ms(self) -> int:
        """The session timeout that the server granted, 0 before it did."""
        return self._client.negotiated_timeout_ms if self._client else 0

    def listen(self, listener: Listener) -> None:
        """Set the one listener, before `start`."""
        self._listener = listener

    async def start(self, timeout: float) -> None:
        """Open the first session, and create the chroot. Raises `CoordinationUnavailable` after `timeout` seconds."""
        assert self.generation == 0, "started twice"
        try:
            with trio.move_on_after(timeout) as waiting:
                self._open()
                await self._ready()
        except t.TreeError:
            await self.close()
            raise
        if waiting.cancelled_caught:
            assert self._client is not None
            cause = self._client.last_warning
            await self.close()
            raise CoordinationUnavailable(self._connect, f"no connection within {timeout:g} s ({cause})")

    async def reopen(self) -> None:
        """Replace an expired session by one of a new kazoo client, waiting as long as it takes."""
        async with self._opening:
            if self._refusal is t.TreeClosed:
                raise t.TreeClosed
            if self._refusal is not None:
                await self._stop_client()
                self._open()
        await self.wait_until_connected()

    async def wait_until_connected(self) -> None:
        """Return once connected, or raise why no session is open."""
        while not self._connected:
            if self._refusal is not None:
                raise self._refusal
            await self._state_changed.wait()

    async def close(self) -> None:
        """End the session, in at most CLOSE_SECONDS_MAX; without a response it expires."""
        async with self._opening:
            self._refuse(t.TreeClosed)
            await self._stop_client()
            self.session_id = 0

    async def expire(self) -> None:
        """Have the server end this session, as it does at the session timeout. For tests."""
        client = self._client
        credentials = client.credentials if client else None
        if credentials is not None:
            await trio.to_thread.run_sync(partial(end_session, self._hosts, self._options, credentials))

    async def submit_many(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        """Perform all, pipelined; at most `max_in_flight_requests` are sent at a time."""
        batch = _Batch(len(ops))
        for index, op in enumerate(ops):
            refusal = self._refuse_or_send(op, batch, index)
            if refusal is not None:
                batch.finish(index, refusal)
        if ops:
            await batch.done.wait()
        return batch.results

    # --- sending

    def _refuse_or_send(self, op: t.Operation, batch: _Batch, index: int) -> t.Result | t.TreeError:
        if self._refusal is not None:
            return self._refusal(path_of(op))
        if not self._connected:
            return t.ConnectionLoss(path_of(op))
        if isinstance(op, t.Multi) and not op.ops:
            batch.finish(index, ())
            return None
        try:
            sent = self._on_server(op)
        except t.TreeError as error:
            return error
        assert self._client is not None
        self._waiting.append((sent, _Ticket(op, batch, index, self._connections)))
        self._send_waiting()
        return None

    def _send_waiting(self) -> None:
        """Send waiting operations up to the limit; without a connection, fail them: they were never sent."""
        while self._waiting and (not self._connected or len(self._sent) < self._max_in_flight_requests):
            sent, ticket = self._waiting.popleft()
            if self._connected and self._client is not None:
                self._sent[ticket] = perf_counter()
                self._client.send(sent, ticket)
            else:
                refusal = self._refusal or t.ConnectionLoss
                ticket.batch.finish(ticket.index, refusal(path_of(ticket.op)))

    def _on_server(self, op: t.Operation) -> t.Operation:
        """`op` with the server's paths and a definite ACL, checked as far as it can be here."""
        if isinstance(op, t.Multi):
            size = sum(len(part.data or b"") for part in op.ops if isinstance(part, t.Create | t.SetData))
            self._check_size(size, "")
            return t.Multi(tuple(self._part_on_server(part) for part in op.ops))
        if isinstance(op, t.Create | t.SetData):
            self._check_size(len(op.data or b""), op.path)
        if isinstance(op, t.Create | t.SetData | t.Delete | t.Check):
            return self._part_on_server(op)
        check_path(op.path)
        return op._replace(path=self._remote(op.path))

    def _part_on_server(
        self, op: t.Create | t.SetData | t.Delete | t.Check
    ) -> t.Create | t.SetData | t.Delete | t.Check:
        check_path(op.path)
        if isinstance(op, t.Create) and op.acl is None:
            return op._replace(path=self._remote(op.path), acl=self._default_acl(op.path))
        return op._replace(path=self._remote(op.path))

    def _check_size(self, size: int, path: str) -> None:
        # A server that receives more than its own jute.maxbuffer closes the connection without a response.
        if size > self._jute_max_buffer:
            raise t.TooLarge(path, f"{size} bytes where jute.maxbuffer is {self._jute_max_buffer}")

    def _remote(self, path: str) -> str:
        if path == "/":
            return self._chroot or "/"
        return self._chroot + path

    def _local(self, path: str) -> str:
        return path[len(self._chroot) :] or "/"

    # --- receiving

    def _emit(self, client: Client, signal: Signal) -> None:
        """In kazoo's thread, or in the loop when kazoo refuses a request at once."""
        self._signals.append((client, signal))
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._drain, idempotent=True)
        except trio.RunFinishedError:
            pass  # the loop has ended without `close`: no one waits

    def _drain(self) -> None:
        while self._signals:
            client, signal = self._signals.popleft()
            match signal:
                case Response():
                    self._on_response(client, signal)
                case Fired():
                    self._on_fired(client, signal)
                case StateChange():
                    self._on_state(client, signal.state)

    def _on_response(self, client: Client, response: Response) -> None:
        ticket = response.ticket
        if isinstance(ticket, _Rewatch):
            if self._is_current(client):
                self._on_rewatched(ticket, response)
            return
        assert isinstance(ticket, _Ticket)
        # kazoo may have kept a request across a reconnection and sent it before the watches.
        if self._rewatches and self._is_current(client) and ticket.connection != self._connections:
            self._deferred.append((client, response))
            return
        result = tree_result(ticket.op, response.value, self._local)
        if self._is_current(client):
            self._watches.keep(ticket.op, result)
        sent_at = self._sent.pop(ticket, None)
        if sent_at is not None:
            self._latency.record(int((perf_counter() - sent_at) * 1e6))
            ticket.batch.finish(ticket.index, result)
        self._send_waiting()

    def _on_fired(self, client: Client, fired: Fired) -> None:
        if self._is_current(client):
            self._fire(fired.type, self._local(fired.path))

    def _fire(self, kind: WatchType, path: str) -> None:
        if self._watches.take(kind, path):
            self._deliver(WatchEvent(kind, path, self.generation))

    def _on_state(self, client: Client, state: SessionState) -> None:
        known = SessionState.CONNECTED if self._connected else SessionState.DISCONNECTED
        if not self._is_current(client) or (state is known and self._connections):
            return
        match state:
            case SessionState.CONNECTED:
                self._connected = True
                self._connections += 1
                self.session_id = client.session_id
                self._rewatch(client)
            case SessionState.DISCONNECTED:
                self._connected = False
            case SessionState.EXPIRED:
                self._refuse(t.SessionExpired)
            case SessionState.AUTH_FAILED:
                self._refuse(t.AuthFailed)
        self._deliver(SessionEvent(state, self.generation))
        self._note_state()
        self._send_waiting()

    def _is_current(self, client: Client) -> bool:
        return client is self._client and self._refusal is None

    def _deliver(self, event: TreeEvent) -> None:
        if self._listener is not None:
            self._listener(event)

    # --- watches after a reconnection

    def _rewatch(self, client: Client) -> None:
        reads = [_Rewatch(t.Exists(path, watch=True), seen) for path, seen in self._watches.data.items()]
        reads += [_Rewatch(t.Children(path, watch=True), seen) for path, seen in self._watches.children.items()]
        self._rewatches += len(reads)
        for read in reads:
            client.send(read.op._replace(path=self._remote(read.op.path)), read)

    def _on_rewatched(self, read: _Rewatch, response: Response) -> None:
        missed = _missed(read, response)
        if missed is not None:
            self._fire(missed, read.op.path)
        self._rewatches -= 1
        if self._rewatches == 0:
            self._release()

    def _release(self) -> None:
        deferred, self._deferred = self._deferred, []
        for client, response in deferred:
            self._on_response(client, response)

    # --- sessions

    def _open(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._watches.clear()
        self.generation += 1
        self._refusal = None
        self._connections = 0
        client: Client
        client = Client(self._hosts, self._options, lambda signal: self._emit(client, signal))
        self._client = client
        client.start()

    def _refuse(self, refusal: type[t.TreeError]) -> None:
        """The session is over: every operation returns `refusal` from now on."""
        self._refusal = refusal
        self._connected = False
        self._rewatches = 0
        self._note_state()
        self._release()
        self._send_waiting()

    def _note_state(self) -> None:
        self._state_changed.set()
        self._state_changed = trio.Event()

    async def _stop_client(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        seconds = CLOSE_SECONDS_MAX if self._connections else CLOSE_UNCONNECTED_SECONDS_MAX
        with trio.CancelScope(shield=True), trio.move_on_after(seconds) as waiting:
            await trio.to_thread.run_sync(_stop, client, abandon_on_cancel=True)
        if waiting.cancelled_caught and self._connections:
            logger.warning("ZooKeeper did not respond to the end of session 0x%x; it will expire", self.session_id)
        unfinished, self._sent = self._sent, {}
        for ticket in unfinished:
            ticket.batch.finish(ticket.index, t.ConnectionLoss(path_of(ticket.op)))

    async def _ready(self) -> None:
        await self.wait_until_connected()
        if self._chroot:
            chroot, self._chroot = self._chroot, ""
            try:
                await self._create_chroot(chroot)
            finally:
                self._chroot = chroot

    async def _create_chroot(self, path: str) -> None:
        try:
            await self.create(path)
        except t.NodeExists:
            return
        except t.NoNode:
            await self._create_chroot(parent_path(path))
            await self._create_chroot(path)


def split_connect(connect: str) -> tuple[str, str]:
    """host:port,.../chroot -> (hosts, chroot or ""). Raises `CoordinationUnavailable` for any other text."""
    hosts, slash, rest = connect.partition("/")
    chroot = (slash + rest).strip()
    if chroot == "/":
        chroot = ""
    try:
        if chroot:
            check_path(chroot)
    except t.BadArguments as error:
        raise CoordinationUnavailable(connect, f"the chroot is not a path ({error})") from error
    if not hosts.strip(" ,"):
        raise CoordinationUnavailable(connect, "there is no host in it")
    return hosts, chroot


def _missed(read: _Rewatch, response: Response) -> WatchType | None:
    """The event that the watcher missed without a connection, if any (DataTree.setWatches)."""
    result = tree_result(read.op, response.value, lambda path: path)
    children = isinstance(read.op, t.Children)
    if isinstance(result, t.ConnectionLoss | t.SessionExpired | t.AuthFailed):
        return None  # the watch is set again with the next connection
    if isinstance(result, t.TreeError) and not isinstance(result, t.NoNode):
        return WatchType.NODE_CHILDREN_CHANGED if children else WatchType.NODE_DATA_CHANGED  # let the caller read it
    now = result.stat if isinstance(result, t.NodeChildren) else result if isinstance(result, Stat) else None
    seen = read.seen
    if now is None:
        return None if seen is None else WatchType.NODE_DELETED
    if seen is None:
        return WatchType.NODE_CREATED
    if children:
        same = (now.czxid, now.pzxid) == (seen.czxid, seen.pzxid)
        return None if same else WatchType.NODE_CHILDREN_CHANGED
    same = (now.czxid, now.mzxid) == (seen.czxid, seen.mzxid)
    return None if same else WatchType.NODE_DATA_CHANGED


def _stop(client: Client) -> None:
    try:
        client.stop()
    except Exception as error:  # kazoo raises one if its thread, a daemon, does not end
        logger.warning("Closing the ZooKeeper client failed: %s", error)
