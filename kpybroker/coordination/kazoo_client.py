"""kazoo with one thread: all its signals in one ordered stream, and its errors as `TreeError`s.

kazoo has one thread for the connection, and by its own handler two more, for results and for watches, which are not
synchronized: a watch event could overtake, or be overtaken by, the results around it. Here:

* the handler runs every callback in the connection's thread, in the order of the bytes on the wire;
* a request has its `_Pending` before it is sent. kazoo's own methods return a result to which a callback is linked
  afterwards: by then the connection's thread may have read the response and the event of the watch that it set, and
  the event, which has its callback, would be first in the stream;
* callbacks only put a `Signal` into the stream; `zookeeper` takes them out in the loop;
* nothing is retried except connecting, which kazoo retries;
* its sockets are `kazoo_sockets`, where it has no TLS.

Only this module and `zookeeper` import kazoo. What kazoo does not offer in public is `KazooClient._call`, which all its
methods send by, and what is read from its log calls (the negotiated timeout, the cause of a failed connection);
tests/coordination/test_zookeeper.py checks that it is there.
"""

from __future__ import annotations

import logging
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kazoo import exceptions as k
from kazoo.client import KazooClient
from kazoo.handlers import threading as kazoo_threading
from kazoo.hosts import collect_hosts
from kazoo.protocol import serialization
from kazoo.protocol.states import Callback, EventType, KazooState, KeeperState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL, Id

from kpybroker.coordination.kazoo_sockets import ServerSocket, known_ready, known_room, wake_pair
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionState, Stat, WatchType
from kpybroker.system.sockets import HAS_POLL, poll

logger = logging.getLogger("kafka.zookeeper.ZooKeeperClient")

RECONNECT_SECONDS_MIN = 0.05
RECONNECT_SECONDS_MAX = 1.0
END_SESSION_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How to connect. `auth` holds (scheme, credential) pairs, as ("digest", "user:password")."""

    session_timeout_ms: int = 18_000
    auth: tuple[tuple[str, str], ...] = ()
    sasl: Mapping[str, str] | None = None
    tls: ssl.SSLContext | None = None


# --- signals


@dataclass(frozen=True, slots=True)
class Response:
    """The result of the request that was sent with `ticket`: a kazoo value or a kazoo exception."""

    ticket: object
    value: Any


@dataclass(frozen=True, slots=True)
class Fired:
    """A watch has fired; `path` is the server's."""

    type: WatchType
    path: str


@dataclass(frozen=True, slots=True)
class StateChange:
    """The session's state, which may be the known one again."""

    state: SessionState


Signal = Response | Fired | StateChange


class _Handler(kazoo_threading.SequentialThreadingHandler):  # type: ignore[misc]
    """Runs callbacks at once, in the calling thread: never `running`, so kazoo queues none of them.

    Connections are made with the given TLS context, since kazoo's own arguments cover too few of its settings.

    No wait for bytes is longer than a third of the session's timeout. kazoo waits for the response to its first
    request as long as the session lasts, and a server that starts can lose that request without closing the
    connection (3.8 does, until its database is there): the session would be over before kazoo tried again.
    """

    def __init__(self, options: ClientOptions) -> None:
        super().__init__()
        self._tls = options.tls
        self._wait_seconds_max = options.session_timeout_ms / 1000 / 3

    def select(self, readers: Any, writers: Any, others: Any, timeout: float) -> Any:
        return self.wait(readers, writers, others, min(timeout, self._wait_seconds_max))

    def wait(self, readers: Any, writers: Any, others: Any, timeout: float) -> Any:
        """kazoo's own makes an epoll of its own each time, four times a request: 40 % of the processor time of it."""
        if ready := known_ready(readers):
            return ready, [], []
        if writers and known_room(writers):
            return [], writers, []
        if not HAS_POLL or (readers and writers):
            return super().select(readers, writers, others, timeout)
        ready = poll(readers or writers, timeout, for_room=not readers)
        return (ready, [], []) if readers else ([], ready, [])

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, timeout: float | None = None, **_: Any
    ) -> socket.socket:
        connection = socket.create_connection(address, timeout)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is None:
                return ServerSocket(connection)
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise

    def create_socket_pair(self) -> tuple[socket.socket, socket.socket]:
        return wake_pair()

    def start(self) -> None:
        """No threads of its own."""

    def stop(self) -> None:
        """Nothing was started."""

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)


class _Pending:
    """What kazoo completes, in place of a result of its own: calls `done` with the value or the exception, once."""

    __slots__ = ("_done",)

    def __init__(self, done: Callable[[Any], None]) -> None:
        self._done: Callable[[Any], None] | None = done

    def set(self, value: Any) -> None:
        """There is a response."""
        done, self._done = self._done, None
        if done is not None:
            done(value)

    set_exception = set  # of a request that kazoo cannot queue it reports the failure twice


class _Log(logging.LoggerAdapter[logging.Logger]):
    """kazoo's log, read on the way: the only place where it reports these two values."""

    def __init__(self) -> None:
        super().__init__(logger, {})
        self.negotiated_timeout_ms = 0
        self.last_warning = "no response"

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if isinstance(msg, str) and msg.startswith("Session created"):
            negotiated = args[2]
            assert isinstance(negotiated, int)
            self.negotiated_timeout_ms = negotiated
        elif level == logging.WARNING:
            self.last_warning = str(msg) % args if args else str(msg)
        super().log(level, msg, *args, **kwargs)


class Client:
    """One session with a server of `hosts`, which is host:port,... without a chroot.

    `emit` is called with every signal, in order, in kazoo's thread or in the caller's.
    """

    def __init__(self, hosts: str, options: ClientOptions, emit: Callable[[Signal], None]) -> None:
        self._emit = emit
        self._log = _Log()
        handler = _Handler(options)
        retry = KazooRetry(
            max_tries=-1,
            delay=RECONNECT_SECONDS_MIN,
            max_delay=RECONNECT_SECONDS_MAX,
            sleep_func=handler.sleep_func,
        )
        self._kazoo = KazooClient(
            hosts=hosts,
            timeout=options.session_timeout_ms / 1000,
            handler=handler,
            connection_retry=retry,
            logger=self._log,
            auth_data=list(options.auth),
            sasl_options=dict(options.sasl) if options.sasl else None,
            use_ssl=options.tls is not None,
        )
        self._kazoo.add_listener(self._on_state)

    @property
    def session_id(self) -> int:
        """The session's id, 0 while there is none."""
        client_id = self._kazoo.client_id
        return 0 if client_id is None else client_id[0]

    @property
    def credentials(self) -> tuple[int, bytes] | None:
        """Session id and password, with which another connection can take over this session."""
        client_id: tuple[int, bytes] | None = self._kazoo.client_id
        return client_id

    @property
    def negotiated_timeout_ms(self) -> int:
        """The session timeout that the server granted, 0 before it did."""
        return self._log.negotiated_timeout_ms

    @property
    def last_warning(self) -> str:
        """kazoo's last warning: why there is no connection."""
        return self._log.last_warning

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._kazoo.start_async()

    def stop(self) -> None:
        """Close the session and end the thread. Blocks, for seconds if the server does not respond."""
        self._kazoo.stop()
        self._kazoo.close()

    def send(self, op: t.Operation, ticket: object) -> None:
        """Queue a request, which gets a `Response` with `ticket`. Paths are the server's. Does not block."""
        self._kazoo._call(_REQUESTS[type(op)](self, op), _Pending(partial(self._on_done, ticket)))

    def _on_done(self, ticket: object, outcome: Any) -> None:
        if isinstance(outcome, k.ConnectionLoss):
            # kazoo fails requests in flight before it calls its listeners; a caller that retries must find it lost.
            self._emit(StateChange(SessionState.DISCONNECTED))
        self._emit(Response(ticket, outcome))

    def on_watch(self, event: WatchedEvent) -> None:
        """The watcher of all requests. Ignores EventType.NONE: `_on_state` reports the connection in more detail."""
        if event.type != EventType.NONE:
            self._emit(Fired(_WATCH_TYPES[event.type], event.path))

    def _on_state(self, state: KazooState) -> None:
        self._emit(StateChange(_session_state(state, self._kazoo.client_state)))


def end_session(hosts: str, options: ClientOptions, credentials: tuple[int, bytes]) -> None:
    """Take a session over and close it. Blocks.

    Both requests are sent at once, unlike by kazoo: the owner reconnects as soon as it loses the session, and would
    take it back from a client that waited for a response before closing it.
    """
    (address, *_), _ = collect_hosts(hosts)
    take_over = serialization.Connect(0, 0, options.session_timeout_ms, *credentials, False).serialize()
    close = struct.pack(">ii", 1, serialization.Close.type)
    requests = b"".join(struct.pack(">i", len(request)) + request for request in (take_over, close))
    with _Handler(options).create_connection(address, address[0], END_SESSION_SECONDS_MAX) as connection:
        connection.sendall(requests)
        while connection.recv(4096):
            pass  # the server closes the connection when the session is over


def _session_state(state: KazooState, keeper_state: KeeperState) -> SessionState:
    if state == KazooState.CONNECTED:
        return SessionState.CONNECTED
    if state == KazooState.SUSPENDED:
        return SessionState.DISCONNECTED
    if keeper_state == KeeperState.AUTH_FAILED:
        return SessionState.AUTH_FAILED
    return SessionState.EXPIRED  # or closed, by us or by kazoo: the session is over


# --- requests


def _watcher(client: Client, watch: bool) -> Callable[[WatchedEvent], None] | None:
    return client.on_watch if watch else None


def _create(_: Client, op: t.Create) -> Any:
    return serialization.Create2(op.path, op.data, _kazoo_acl(op.acl), _flags(op))


def _multi(_: Client, op: t.Multi) -> Any:
    return serialization.Transaction([_part(part) for part in op.ops])


def _part(part: t.Create | t.SetData | t.Delete | t.Check) -> Any:
    match part:
        case t.Create():
            return serialization.Create(part.path, part.data, _kazoo_acl(part.acl), _flags(part))
        case t.SetData():
            return serialization.SetData(part.path, part.data, part.version)
        case t.Delete():
            return serialization.Delete(part.path, part.version)
        case t.Check():
            return serialization.CheckVersion(part.path, part.version)


def _flags(op: t.Create) -> int:
    return op.ephemeral | op.sequential << 1  # CreateMode.toFlag


def _kazoo_acl(acl: tuple[t.Acl, ...] | None) -> list[ACL]:
    wanted = t.OPEN_ACL_UNSAFE if acl is None else acl
    return [ACL(entry.permissions, Id(entry.scheme, entry.identity)) for entry in wanted]


_REQUESTS: dict[type, Callable[[Client, Any], Any]] = {
    t.Get: lambda client, op: serialization.GetData(op.path, _watcher(client, op.watch)),
    t.Exists: lambda client, op: serialization.Exists(op.path, _watcher(client, op.watch)),
    t.Children: lambda client, op: serialization.GetChildren2(op.path, _watcher(client, op.watch)),
    t.GetAcl: lambda _, op: serialization.GetACL(op.path),
    t.SetAcl: lambda _, op: serialization.SetACL(op.path, _kazoo_acl(op.acl), op.version),
    t.SetData: lambda _, op: serialization.SetData(op.path, op.data, op.version),
    t.Delete: lambda _, op: serialization.Delete(op.path, op.version),
    t.Create: _create,
    t.Multi: _multi,
}


# --- results

_WATCH_TYPES = {
    EventType.CREATED: WatchType.NODE_CREATED,
    EventType.DELETED: WatchType.NODE_DELETED,
    EventType.CHANGED: WatchType.NODE_DATA_CHANGED,
    EventType.CHILD: WatchType.NODE_CHILDREN_CHANGED,
}

# In order: ConnectionClosedError is a SessionExpiredError in kazoo, and means that the request is lost, sent or not.
_ERRORS: tuple[tuple[type[Exception], type[t.TreeError]], ...] = (
    (k.ConnectionClosedError, t.ConnectionLoss),
    (k.ConnectionLoss, t.ConnectionLoss),
    (k.SessionExpiredError, t.SessionExpired),
    (k.AuthFailedError, t.AuthFailed),
    (k.NoNodeError, t.NoNode),
    (k.NodeExistsError, t.NodeExists),
    (k.BadVersionError, t.BadVersion),
    (k.NotEmptyError, t.NotEmpty),
    (k.NoChildrenForEphemeralsError, t.NoChildrenForEphemerals),
    (k.NoAuthError, t.NoAuth),
    (k.InvalidACLError, t.InvalidAcl),
    (k.BadArgumentsError, t.BadArguments),
    (k.RolledBackError, t.RolledBack),
    (k.RuntimeInconsistency, t.RuntimeInconsistency),
)


def tree_error(error: BaseException, path: str) -> t.TreeError:
    """kazoo's exception as the contract's; SystemFailure for any other."""
    for kazoo_type, tree_type in _ERRORS:
        if isinstance(error, kazoo_type):
            return tree_type(path)
    return t.SystemFailure(path, f"{type(error).__name__} {error}".strip())


def stat_of(stat: ZnodeStat) -> Stat:
    """kazoo's stat as the contract's."""
    return Stat(
        stat.czxid,
        stat.mzxid,
        stat.ctime,
        stat.mtime,
        stat.version,
        stat.cversion,
        stat.aversion,
        stat.ephemeralOwner,
        stat.dataLength,
        stat.numChildren,
        stat.pzxid,
    )


def tree_result(op: t.Operation, value: Any, local: Callable[[str], str]) -> t.Result | t.TreeError:
    """kazoo's `value` as the contract defines it; `op` has the caller's paths, and `local` translates the server's."""
    if isinstance(value, BaseException):
        return tree_error(value, t.path_of(op))
    match op:
        case t.Get():
            return t.NodeData(value[0], stat_of(value[1]))
        case t.Exists():
            return None if value is None else stat_of(value)
        case t.Children():
            return t.NodeChildren(tuple(value[0]), stat_of(value[1]))
        case t.Create():
            return t.Created(local(value[0]), stat_of(value[1]))
        case t.SetData() | t.SetAcl():
            return stat_of(value)
        case t.GetAcl():
            acl = tuple(t.Acl(entry.perms, entry.id.scheme, entry.id.id or "") for entry in value[0])
            return t.NodeAcl(acl, stat_of(value[1]))
        case t.Multi():
            return _multi_result(op, value, local)
        case _:
            return None


def _multi_result(op: t.Multi, values: list[Any], local: Callable[[str], str]) -> t.Result | t.TreeError:
    if any(isinstance(value, BaseException) for value in values):
        parts = zip(op.ops, values, strict=True)
        return t.MultiFailed(tuple(tree_error(value, part.path) for part, value in parts))
    return tuple(_part_result(value, local) for value in values)


def _part_result(value: Any, local: Callable[[str], str]) -> t.PartResult:
    if isinstance(value, str):
        return t.Created(local(value), None)
    return stat_of(value) if isinstance(value, ZnodeStat) else None
