"""What each request does, and the body of its response (FinalRequestProcessor)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kpybroker.coordination.server import jute, requests, responses
from kpybroker.coordination.server.access import hidden
from kpybroker.coordination.server.codes import ErrorCode, code_of
from kpybroker.core import tree as t
from kpybroker.core.tree import WatchType

if TYPE_CHECKING:
    from kpybroker.coordination.server.client import Client
    from kpybroker.coordination.server.requests import Request
    from kpybroker.coordination.server.service import Service
    from kpybroker.coordination.server.sessions import Session


class Outcome(NamedTuple):
    """An error has no body. `closes`: the connection is to be closed after the response."""

    error: ErrorCode = ErrorCode.OK
    body: bytes = b""
    closes: bool = False


class _Asked(NamedTuple):
    """A request and who sent it."""

    request: Request
    service: Service
    client: Client
    session: Session


def perform(request: Request, service: Service, client: Client, session: Session) -> Outcome:
    """Perform one request. Watch events of its changes are in the queues when this returns."""
    asked = _Asked(request, service, client, session)
    try:
        return _PERFORM[type(request.body)](asked, request.body)
    except t.TreeError as error:
        return Outcome(code_of(error))


# --- nodes


def _read(asked: _Asked, op: t.ReadOperation) -> Outcome:
    result = _read_and_watch(asked, op)
    if result is None:
        return Outcome(ErrorCode.NO_NODE)
    if isinstance(result, t.NodeAcl) and not asked.client.access.may(result.acl, t.ADMIN):
        result = t.NodeAcl(hidden(result.acl), result.stat)
    return Outcome(body=responses.result(asked.request.code, result))


def _read_and_watch(asked: _Asked, op: t.ReadOperation) -> t.Result:
    result = asked.service.store.read_as(op, asked.client.access)
    if isinstance(op, t.Children) and op.watch:
        asked.service.watches.watch_children(op.path, asked.client)
    elif isinstance(op, t.Get | t.Exists) and op.watch:
        asked.service.watches.watch_data(op.path, asked.client)
    return result


def _write(asked: _Asked, op: t.WriteOperation) -> Outcome:
    change = asked.service.store.write_as(op, asked.session.id, asked.client.access)
    return Outcome(body=responses.result(asked.request.code, change.result))


def _multi(asked: _Asked, op: t.Multi) -> Outcome:
    parts: tuple[t.Result | t.TreeError, ...]
    try:
        parts = asked.service.store.write_as(op, asked.session.id, asked.client.access).parts
    except t.MultiFailed as failed:
        parts = failed.errors
    return Outcome(body=responses.multi(asked.request.codes, parts))


def _multi_read(asked: _Asked, body: requests.MultiRead) -> Outcome:
    parts: list[t.Result | t.TreeError] = []
    for op in body.ops:
        try:
            parts.append(_read_and_watch(asked, op))
        except t.TreeError as error:
            parts.append(error)
    return Outcome(body=responses.multi(asked.request.codes, parts))


def _sync(asked: _Asked, body: requests.Sync) -> Outcome:
    return Outcome(body=jute.string(body.path))


def _get_ephemerals(asked: _Asked, body: requests.GetEphemerals) -> Outcome:
    owned = asked.service.store.image.owners.get(asked.session.id, {})
    return Outcome(body=responses.strings([path for path in owned if path.startswith(body.prefix)]))


def _count_all(asked: _Asked, body: requests.CountAll) -> Outcome:
    asked.service.store.read_as(t.Children(body.path), asked.client.access)
    nodes = asked.service.store.image.nodes
    count, left = 0, [body.path]
    while left:
        path = left.pop()
        children = nodes[path].children
        count += len(children)
        left += [f"{path.rstrip('/')}/{name}" for name in children]
    return Outcome(body=jute.int32(count))


# --- watches


def _set_watches(asked: _Asked, body: requests.SetWatches) -> Outcome:
    """Set each watch again, or report at once what it has missed (DataTree.setWatches), which heeds no ACLs."""
    watches, nodes, client = asked.service.watches, asked.service.store.image.nodes, asked.client
    for path in body.data:
        node = nodes.get(path)
        if node is None:
            _missed(asked, WatchType.NODE_DELETED, path)
        elif node.mzxid > body.zxid:
            _missed(asked, WatchType.NODE_DATA_CHANGED, path)
        else:
            watches.watch_data(path, client)
    for path in body.exists:
        node = nodes.get(path)
        if node is None:
            watches.watch_data(path, client)
        else:
            _missed(asked, WatchType.NODE_CREATED, path)
    for path in body.children:
        node = nodes.get(path)
        if node is None:
            _missed(asked, WatchType.NODE_DELETED, path)
        elif node.pzxid > body.zxid:
            _missed(asked, WatchType.NODE_CHILDREN_CHANGED, path)
        else:
            watches.watch_children(path, client)
    for path in body.persistent:
        watches.watch_always(path, client, is_recursive=False)
    for path in body.recursive:
        watches.watch_always(path, client, is_recursive=True)
    return Outcome()


def _missed(asked: _Asked, kind: WatchType, path: str) -> None:
    asked.client.queue(asked.service.store.changed_zxid, responses.notification(kind, path))


def _add_watch(asked: _Asked, body: requests.AddWatch) -> Outcome:
    t.check_path(body.path)
    asked.service.watches.watch_always(body.path, asked.client, is_recursive=body.is_recursive)
    return Outcome(body=jute.int32(ErrorCode.OK))


def _remove_watches(asked: _Asked, body: requests.RemoveWatches) -> Outcome:
    found = asked.service.watches.remove(body.path, body.type, asked.client, keeps=body.keeps)
    return Outcome(ErrorCode.OK if found else ErrorCode.NO_WATCHER)


# --- the session


def _ping(asked: _Asked, body: requests.Ping) -> Outcome:
    return Outcome()


def _auth(asked: _Asked, body: requests.Auth) -> Outcome:
    if asked.client.access.prove(body.scheme, body.credentials):
        return Outcome()
    return Outcome(ErrorCode.AUTH_FAILED, closes=True)


def _who_am_i(asked: _Asked, body: requests.WhoAmI) -> Outcome:
    identities = asked.client.access.identities
    shown = [(scheme, name.partition(":")[0] if scheme == "digest" else name) for scheme, name in identities]
    return Outcome(body=jute.vector(jute.string(scheme) + jute.string(user) for scheme, user in shown))


def _close(asked: _Asked, body: requests.CloseSession) -> Outcome:
    asked.service.end(asked.session)
    return Outcome()


def _refused(asked: _Asked, body: requests.Refused) -> Outcome:
    return Outcome(body.error, closes=body.closes)


_PERFORM: Final[dict[type, Callable[[_Asked, Any], Outcome]]] = {
    t.Get: _read,
    t.Exists: _read,
    t.Children: _read,
    t.GetAcl: _read,
    t.Create: _write,
    t.SetData: _write,
    t.Delete: _write,
    t.Check: _write,
    t.SetAcl: _write,
    t.Multi: _multi,
    requests.MultiRead: _multi_read,
    requests.Sync: _sync,
    requests.GetEphemerals: _get_ephemerals,
    requests.CountAll: _count_all,
    requests.SetWatches: _set_watches,
    requests.AddWatch: _add_watch,
    requests.RemoveWatches: _remove_watches,
    requests.Ping: _ping,
    requests.Auth: _auth,
    requests.WhoAmI: _who_am_i,
    requests.CloseSession: _close,
    requests.Refused: _refused,
}
