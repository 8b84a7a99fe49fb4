"""Everything that connections share: the store, sessions, watches, and what was committed.

Rules:

* what goes to one client is one queue, in the order in which the tree changed: a watch event is in front of the
  response that shows the change, and behind the response that set the watch;
* nothing leaves before the changes that it shows are committed (`embedded`). A commit that fails ends the connections
  that wait for it: to their clients the outcome is unknown, as it is;
* the zxid of a response is that of the last change that it can show, so that a client which connects again can say what
  it has seen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kpybroker.coordination.server import responses
from kpybroker.coordination.server.places import Places
from kpybroker.coordination.server.sessions import Limits, Session, Sessions
from kpybroker.coordination.server.statistics import Statistics
from kpybroker.coordination.server.watches import Watches
from kpybroker.core import tree as t

if TYPE_CHECKING:
    from kpybroker.coordination.embedded import EmbeddedStore
    from kpybroker.coordination.image import Change
    from kpybroker.coordination.server.client import Client

logger = logging.getLogger("kafka.zookeeper.ZooKeeperServer")


class Service:
    """`now` is a monotonic clock in seconds. `commit_soon` has the store settled soon, in the loop."""

    def __init__(
        self,
        store: EmbeddedStore,
        limits: Limits,
        now: Callable[[], float],
        new_password: Callable[[], bytes],
        commit_soon: Callable[[], None],
    ) -> None:
        self.store = store
        self.limits = limits
        self.now = now
        self.commit_soon = commit_soon
        self.sessions = Sessions(limits, store.next_session_id, new_password)
        self.watches: Watches[Client] = Watches()
        self.clients: dict[Client, None] = {}
        self.places = Places(limits, now)
        self.statistics = Statistics()
        self.committed_zxid = -1
        """Responses that show nothing later may be sent; at first, after the first commit."""
        self.required: tuple[str, str] | None = None
        """The identity that a client proves before its first operation; None: everybody is welcome."""
        self._client_of: dict[int, Client] = {}

    # --- as the store's observer

    def recorded(self, change: Change) -> None:
        """Queue the watch events of a change."""
        for kind, path, acl in change.triggers:
            for client in self.watches.fire(kind, path):
                if client.access.may(acl, t.READ):
                    client.queue(change.zxid, responses.notification(kind, path))

    def committed(self, zxid: int) -> None:
        """Let everything go out that shows nothing later."""
        if zxid > self.committed_zxid:
            self.committed_zxid = zxid
            for client in self.clients:
                client.wake()

    def commit_failed(self, cause: str) -> None:
        """End the connections that wait for a commit."""
        waiting = [client for client in self.clients if client.is_waiting]
        logger.error("Changes were not saved (%s): %d connections are closed", cause, len(waiting))
        for client in waiting:
            client.abort()

    # --- connections and sessions

    def admits(self, client: Client) -> bool:
        """Whether it may do what ACLs allow it."""
        return self.required is None or self.required in client.access.identities

    def add(self, client: Client) -> None:
        """Note a new connection, of a stranger."""
        self.places.enter(client)
        self.clients[client] = None

    def settle(self, client: Client) -> bool:
        """Note a stranger that is known by now, if it is; False if there is no place for it."""
        session = client.session
        if not client.is_stranger or session is None or not self.admits(client):
            return True
        session.is_known = True
        return self.places.settle(client)

    def remove(self, client: Client) -> None:
        """Forget a connection that has ended, and its watches. Its session goes on, unless it was a stranger's."""
        self.watches.forget(client)
        self.clients.pop(client, None)
        self.places.leave(client)
        session = client.session
        if session is not None and self._client_of.get(session.id) is client:
            del self._client_of[session.id]
            if not session.is_known:
                self.end(session)

    def attach(self, client: Client, session: Session) -> None:
        """Make this the session's connection; an earlier one ends."""
        earlier = self._client_of.get(session.id)
        if earlier is not None:
            earlier.abort()
        self._client_of[session.id] = client

    def end(self, session: Session) -> None:
        """End a session: its ephemeral nodes are deleted."""
        if self.sessions.end(session):
            self._client_of.pop(session.id, None)
            self.store.end_ephemerals(session.id)

    def expire(self) -> None:
        """End the sessions whose clients were not heard in time."""
        for session in self.sessions.due(self.now()):
            logger.info("Expiring session 0x%x, timeout of %dms exceeded", session.id, session.timeout_ms)
            self._expire(session)

    def expire_owner(self, path: str) -> bool:
        """End the session that owns this ephemeral node: its client is known to be gone. False if there is none."""
        node = self.store.image.nodes.get(path)
        session = None if node is None else self.sessions.get(node.ephemeral_owner)
        if session is None:
            return False
        logger.info("Expiring session 0x%x: the client that owns %s is gone", session.id, path)
        self._expire(session)
        return True

    def _expire(self, session: Session) -> None:
        client = self._client_of.get(session.id)
        self.end(session)
        if client is not None:
            client.abort()
        self.commit_soon()

    def remove_containers(self) -> None:
        """Delete the containers that had children and have none (ContainerManager)."""
        nodes = self.store.image.nodes
        for path in list(self.store.image.containers):
            node = nodes.get(path)
            if node is not None and node.creates and not node.children:
                self.store.write_as(t.Delete(path), 0, None)
                self.commit_soon()
