"""The levers of all brokers of a process, over all their starts: what each is given in place of sockets, disk and tree.

`Topology.seams` is what a broker starts with. `pause`, `resume` and `partition_network` are here since they move
several levers at once; everything that needs a running broker is in `control.methods.topology`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, cast

from kpybroker.broker.network.transport import socket_transport
from kpybroker.control.levers.disk import FaultyFiles
from kpybroker.control.levers.holds import Holds
from kpybroker.control.levers.transport import HeldTransport, Network
from kpybroker.control.levers.tree import HeldTree
from kpybroker.storage.disk.local_files import local_files

if TYPE_CHECKING:
    from kpybroker.broker.network.transport import Transport
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.control.hosted import Hosted
    from kpybroker.control.levers.tree import ExpirableTree
    from kpybroker.control.plan import BrokerPlan
    from kpybroker.coordination.tree import Tree

MakeTransport = Callable[["BrokerConfig"], "Transport"]


class Levers:
    """Of one broker. `tree` is that of its last start, None before the first."""

    def __init__(self, transport: HeldTransport) -> None:
        self.transport = transport
        self.files = FaultyFiles(local_files())
        self.tree: HeldTree | None = None
        self.is_killed = False
        """Its process is about to end by a kill, as far as its files are concerned."""

    @property
    def is_paused(self) -> bool:
        """Whether the broker is as if it had got SIGSTOP."""
        return self.transport.is_paused

    def pause(self) -> None:
        """Stop everything that others could notice of the broker, until `resume`."""
        self.transport.pause()
        if self.tree is not None:
            self.tree.pause()

    def resume(self) -> None:
        """Let the broker go on; it first learns what it has missed."""
        if self.tree is not None:
            self.tree.resume()
        self.transport.resume()

    def kill(self) -> None:
        """Its process is about to be killed, also if it is paused."""
        self.is_killed = True
        if self.is_paused:
            self.transport.drop()

    def ended(self) -> None:
        """The broker has ended: what belongs to a process goes, what belongs to its disk and network stays."""
        if self.is_killed:
            self.is_killed = False
            self.files.crash()
        self.tree = None
        self.transport.resume()


class Topology:
    """The levers by broker, the network between them, and what is held back in all of them."""

    def __init__(self, make_transport: MakeTransport = socket_transport) -> None:
        self.network = Network()
        self.holds = Holds(self.network.is_peer)
        self._make_transport = make_transport
        self._levers: dict[int, Levers] = {}
        self._with_tree: Collection[int] | None = None

    def install(self, hosted: Hosted) -> None:
        """Let the brokers that start from now on have levers."""
        hosted.wrap_tree = lambda broker_id, tree: self._wrap_tree(hosted, broker_id, tree)
        hosted.on_end(lambda broker_id: self._levers[broker_id].ended())

    def seams(self, plan: BrokerPlan) -> dict[str, Any]:
        """Keyword arguments of `Broker.open`."""
        levers = self._levers.get(plan.broker_id)
        if levers is None:
            transport = HeldTransport(self._make_transport(plan.config()), plan.broker_id, self.network)
            levers = self._levers[plan.broker_id] = Levers(transport)
        return {"transport": levers.transport, "files": levers.files}

    def levers(self, broker_id: int) -> Levers:
        """Those of a broker that was started. Raises KeyError."""
        return self._levers[broker_id]

    def is_paused(self, broker_id: int) -> bool:
        """Whether a broker is paused; one without levers never is."""
        return broker_id in self._levers and self._levers[broker_id].is_paused

    def forget(self, broker_id: int) -> None:
        """A broker was removed."""
        self._levers.pop(broker_id, None)
        self.holds.version_caps.pop(broker_id, None)

    def _wrap_tree(self, hosted: Hosted, broker_id: int, tree: Tree) -> HeldTree:
        def spawn(task: Callable[[], Awaitable[None]]) -> None:
            hosted.spawn(task)

        held = self._levers[broker_id].tree = HeldTree(
            cast("ExpirableTree", tree), spawn, hosted.clock
        )  # as both kinds are
        if not self._reaches_tree(broker_id):
            held.cut()
        return held

    def _reaches_tree(self, broker_id: int) -> bool:
        return self._with_tree is None or broker_id in self._with_tree

    # --- the network

    def partition_network(self, groups: Iterable[Iterable[int]], with_tree: Collection[int] | None) -> None:
        """Cut the network between groups of brokers; only those of `with_tree` reach the tree, None: all."""
        self.network.part(groups)
        self._with_tree = with_tree
        for broker_id, levers in self._levers.items():
            if levers.tree is not None:
                if self._reaches_tree(broker_id):
                    levers.tree.restore()
                else:
                    levers.tree.cut()

    def heal_network(self) -> None:
        """All reach each other, and the tree."""
        self.partition_network((), None)

    def uncap_versions(self) -> None:
        """Serve every version again."""
        self.holds.version_caps.clear()

    def resume_all(self) -> None:
        """Resume every broker that is paused."""
        for levers in self._levers.values():
            levers.resume()
