"""The contract of the znode tree, kept by `embedded`, `zookeeper` and `faults` (tests/coordination/test_contract.py).

One `Tree` is one client with one session at a time, as one ``org.apache.zookeeper.ZooKeeper`` handle. Rules:

* **Order.** Operations are performed in the order of their submission. Results and events arrive in the tree's order;
  a watch event reaches the listener before any result that shows the change it announces, also when the watcher made
  the change itself.
* **Listener.** One plain function, called in the loop, which must not block and must not raise; usually it puts the
  event in a queue. A watch's event may arrive before the task that set the watch resumes with its result, so an
  unexpected event must not be dropped.
* **Watches** fire once; one watch of a path and kind (data or children) exists however often it is set; they survive a
  reconnection, after which missed changes are announced. They end with the session.
* **Unknown outcomes.** `ConnectionLoss` always reaches the caller. Nothing is retried here; the helpers at the end of
  this module retry what may be retried, and say so.
* **Expiry** is an event, and every operation returns `SessionExpired` until `reopen` makes the next session (Kafka's
  ``ZooKeeperClient.reinitialize``), which raises the generation by one.

It does not know what Kafka keeps in the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kpybroker.core import tree as t
from kpybroker.core.tree import (
    ANY_VERSION,
    Acl,
    Created,
    NodeChildren,
    NodeData,
    Operation,
    PartResult,
    Result,
    Stat,
    TreeError,
    TreeEvent,
)
from kpybroker.metrics.histogram import Histogram

Listener = Callable[[TreeEvent], None]


class CoordinationUnavailable(Exception):
    """The tree could not be reached or opened. `place` is the connect string or the file, `cause` is one line."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(f"{place}: {cause}")
        self.place = place
        self.cause = cause


class Tree(Protocol):
    """One client of the tree. Implementations derive from it, for the methods that are the same in all."""

    latency: Histogram | None = None
    """From a request until its response, in milliseconds; None where there is no server to wait for."""

    @property
    def session_id(self) -> int:
        """The session's id, 0 when there is none."""

    @property
    def generation(self) -> int:
        """How many sessions this client has had: 0 before `start`."""

    @property
    def connected(self) -> bool:
        """Whether there is a session with a connection."""

    @property
    def negotiated_timeout_ms(self) -> int:
        """The session timeout that the tree granted."""

    def listen(self, listener: Listener) -> None:
        """Set the one listener, before `start`."""

    async def start(self, timeout: float) -> None:
        """Open the first session. Raises `CoordinationUnavailable` after `timeout` seconds."""

    async def reopen(self) -> None:
        """Replace an expired session by a new one, waiting as long as it takes.

        A live session is kept, and a second call while one is under way waits for that one. Raises `TreeClosed`.
        """

    async def wait_until_connected(self) -> None:
        """Return once connected. Raises `SessionExpired`, `AuthFailed` or `TreeClosed` if that cannot happen."""

    async def close(self) -> None:
        """End the session and with it its ephemeral nodes. May be called more than once."""

    async def submit_many(self, ops: Sequence[Operation]) -> list[Result | TreeError]:
        """Perform all, pipelined and in order; one result for each operation, in the same order. Errors are results."""

    async def submit(self, op: Operation) -> Result:
        """Perform one operation; its error is raised."""
        (result,) = await self.submit_many((op,))
        if isinstance(result, TreeError):
            raise result
        return result

    async def get(self, path: str, *, watch: bool = False) -> NodeData:
        """Data and stat of a node. Raises TreeError, as all below do."""
        result = await self.submit(t.Get(path, watch))
        assert isinstance(result, NodeData)
        return result

    async def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        """The node's stat, None if it is missing; the watch is set in both cases."""
        result = await self.submit(t.Exists(path, watch))
        assert result is None or isinstance(result, Stat)
        return result

    async def children(self, path: str, *, watch: bool = False) -> NodeChildren:
        """Names of the children, and the node's stat."""
        result = await self.submit(t.Children(path, watch))
        assert isinstance(result, NodeChildren)
        return result

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        acl: tuple[Acl, ...] | None = None,
    ) -> Created:
        """Create a node; its real path, which differs from `path` for a sequential one, and its stat."""
        result = await self.submit(t.Create(path, data, ephemeral, sequential, acl))
        assert isinstance(result, Created)
        return result

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data, if it has this version; its new stat."""
        result = await self.submit(t.SetData(path, data, version))
        assert isinstance(result, Stat)
        return result

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node without children, if it has this version."""
        await self.submit(t.Delete(path, version))

    async def multi(self, *ops: t.Create | t.SetData | t.Delete | t.Check) -> tuple[PartResult, ...]:
        """Perform all parts as one transaction, or none: `MultiFailed` has the error of each part."""
        result = await self.submit(t.Multi(ops))
        assert isinstance(result, tuple)
        return result


async def retry_until_connected(tree: Tree, ops: Sequence[Operation]) -> list[Result | TreeError]:
    """Perform `ops`, and repeat those that ended in `ConnectionLoss` once there is a connection again.

    As KafkaZkClient.retryRequestsUntilConnected, with the same caveat: a repeated write may meet its own
    first run (`NodeExists`, `BadVersion`, `NoNode`), which the caller must distinguish from another client's. Raises
    `SessionExpired` when the session ends.
    """
    results: list[Result | TreeError] = await tree.submit_many(ops)
    while lost := [i for i, result in enumerate(results) if isinstance(result, t.ConnectionLoss)]:
        await tree.wait_until_connected()
        again = await tree.submit_many([ops[i] for i in lost])
        for i, result in zip(lost, again, strict=True):
            results[i] = result
    return results


async def create_recursive(tree: Tree, path: str, data: bytes | None = None, *, fail_if_exists: bool = True) -> None:
    """Create `path` and its missing parents, as KafkaZkClient.createRecursive."""
    while True:
        (result,) = await retry_until_connected(tree, [t.Create(path, data)])
        if isinstance(result, t.NoNode):
            await create_recursive(tree, t.parent_path(path), fail_if_exists=False)
            continue
        if isinstance(result, t.NodeExists) and not fail_if_exists:
            return
        if isinstance(result, TreeError):
            raise result
        return


async def delete_recursive(tree: Tree, path: str) -> bool:
    """Delete `path` and all below it; True if it existed. As KafkaZkClient.deleteRecursive."""
    while True:
        (listed,) = await retry_until_connected(tree, [t.Children(path)])
        if isinstance(listed, t.NoNode):
            return False
        if isinstance(listed, TreeError):
            raise listed
        assert isinstance(listed, NodeChildren)
        for name in listed.names:
            await delete_recursive(tree, f"{path.rstrip('/')}/{name}")
        (result,) = await retry_until_connected(tree, [t.Delete(path)])
        if isinstance(result, t.NotEmpty):
            continue  # another client has just created a child
        if isinstance(result, TreeError) and not isinstance(result, t.NoNode):
            raise result
        return True
