"""Several brokers for a test, which fail, part and move as the test wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kpybroker.testing.brokers import GROUP, Brokers
from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import checked
from kpybroker.testing.errors import UsageError
from kpybroker.testing.fault import Fault
from kpybroker.testing.running.options import OPTIONS, BrokerKeywords, BrokerOptions, by_one_name, takes

if TYPE_CHECKING:
    from typing import Unpack

    from kpybroker.testing.running.channel import Channel


BROKERS: Final = kinds.integer(1, 9)
"""How many brokers a cluster may have."""
_BROKER: Final = kinds.optional(kinds.index)
_GROUP_OF_BROKERS: Final = kinds.each(kinds.index, "ids of brokers")


class Node:
    """One broker of a cluster: `cluster[1]`."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._cluster = cluster
        self.id = node_id

    @property
    def _channel(self) -> Channel:
        return self._cluster.channel

    @checked()
    def stop(self) -> None:
        """Stop it in order: it hands over what it leads, and registers no more. Returns when it has ended."""
        self._channel.call("broker_down", broker=self.id, how="stop")

    @checked()
    def kill(self) -> None:
        """End it as SIGKILL ends a process: connections are reset, and its files stay as they are."""
        self._channel.call("broker_down", broker=self.id, how="kill")

    @checked()
    def start(self) -> None:
        """Start it again, with the same id, port and directory. Returns when it serves."""
        self._channel.call("broker_up", broker=self.id)

    @checked()
    def pause(self) -> None:
        """Let it do nothing, as SIGSTOP does; its connections stay open."""
        self._channel.call("pause", broker=self.id)

    @checked()
    def resume(self) -> None:
        """The reverse of `pause`."""
        self._channel.call("resume", broker=self.id)

    @checked()
    def expire_session(self) -> None:
        """End its session in ZooKeeper, or in the embedded tree; it registers again by itself."""
        self._channel.call("expire_session", broker=self.id)

    @checked()
    def status(self) -> Mapping[str, Any]:
        """Its state, listeners, rack and log directories."""
        for broker in self._cluster.status()["brokers"]:
            if broker["id"] == self.id:
                found: Mapping[str, Any] = broker
                return found
        raise UsageError(f"there is no broker {self.id}", f"the brokers are {self._cluster.ids}")

    @property
    def is_up(self) -> bool:
        """Whether it serves."""
        return bool(self.status()["state"] == "up")

    @property
    def bootstrap_server(self) -> str:
        """The address of its first listener. Raises UsageError while it is down."""
        listeners = self.status()["listeners"]
        if not listeners:
            raise UsageError(f"broker {self.id} is down", "start it first")
        return f"{listeners[0]['host']}:{listeners[0]['port']}"

    def __repr__(self) -> str:
        return f"<Node {self.id}>"


class Cluster(Brokers):
    """`brokers` brokers with the ids 0, 1, 2 ..., for the length of a `with` or `async with` block.

    The other arguments are those of `Broker`; `port` is the first of as many ports.
    """

    @takes(BrokerOptions)
    @by_one_name
    @checked(OPTIONS, brokers=BROKERS)
    def __init__(self, brokers: int = 3, **options: Unpack[BrokerKeywords]) -> None:
        super().__init__(brokers, **options)

    # --- its brokers

    @property
    def ids(self) -> list[int]:
        """Of all brokers, up or down."""
        return [broker["id"] for broker in self.status()["brokers"]]

    @checked(broker=kinds.index)
    def __getitem__(self, broker: int) -> Node:
        if broker not in self.ids:
            raise UsageError(f"there is no broker {broker}", f"the brokers are {self.ids}")
        return Node(self, broker)

    def __iter__(self) -> Iterator[Node]:
        return iter([Node(self, broker) for broker in self.ids])

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def controller(self) -> Node | None:
        """The broker that is the controller now."""
        found = self.status()["controller"]
        return None if found is None else Node(self, found)

    @checked(broker=_BROKER, rack=kinds.optional(kinds.text))
    def add_broker(self, broker: int | None = None, *, rack: str | None = None) -> Node:
        """Start one more, with the next free id or with this one."""
        return Node(self, self.channel.call("add_broker", broker=broker, rack=rack)["id"])

    @checked(broker=kinds.index)
    def remove_broker(self, broker: int) -> None:
        """Stop one, for good."""
        self.channel.call("remove_broker", broker=broker)

    # --- the network between them

    @checked(groups=kinds.brokers, coordination=kinds.optional(_GROUP_OF_BROKERS))
    def partition(self, *groups: Sequence[int], coordination: Sequence[int] | None = None) -> None:
        """Cut the connections between these groups of brokers; clients reach all of them.

        `coordination`: the brokers that still reach ZooKeeper or the embedded tree; by default all of them do.
        """
        named = None if coordination is None else list(coordination)
        self.channel.call("partition_network", groups=[list(group) for group in groups], coordination=named)

    @checked()
    def heal(self) -> None:
        """The reverse of `partition`."""
        self.channel.call("heal_network")

    # --- leaders and replicas

    @checked(topic=kinds.topic, partition=kinds.index, to=_BROKER)
    def move_leader(self, topic: str, partition: int = 0, *, to: int | None) -> None:
        """Make a replica the leader; None: leave the partition without one."""
        self.channel.call("move_leader", topic=topic, partition=partition, to=to)

    @checked(topic=kinds.optional(kinds.topic), seed=kinds.index)
    def shuffle_leaders(self, topic: str | None = None, seed: int = 0) -> None:
        """Make a random replica the leader of each partition."""
        self.channel.call("shuffle_leaders", topic=topic, seed=seed)

    @checked(to=_BROKER, group=GROUP, transactional_id=GROUP)
    def move_coordinator(
        self, *, to: int | None, group: str | None = None, transactional_id: str | None = None
    ) -> None:
        """Make a broker the coordinator of a group or of a transactional id; None: leave it without one."""
        self.channel.call("move_coordinator", to=to, group=group, transactional_id=transactional_id)

    @checked(topic=kinds.topic, partition=kinds.index, to=_GROUP_OF_BROKERS)
    def shrink_isr(self, topic: str, partition: int = 0, *, to: Sequence[int]) -> Fault:
        """Take all but these replicas out of the ISR, and keep them out until the fault is removed."""
        made = self.channel.call("shrink_isr", topic=topic, partition=partition, to=list(to))
        return self.faults[made["id"]]

    @checked(topic=kinds.topic, partition=kinds.index, broker=kinds.index, offset=kinds.optional(kinds.offset))
    def lag_follower(self, topic: str, partition: int = 0, *, broker: int, offset: int | None = None) -> Fault:
        """Let a follower have nothing from `offset` on (None: the log's end) until the fault is removed.

        The high watermark waits for it while it is in the ISR.
        """
        made = self.channel.call("lag_follower", topic=topic, partition=partition, broker=broker, offset=offset)
        return self.faults[made["id"]]

    @checked(broker=kinds.index)
    def expire_session(self, broker: int) -> None:
        """As `cluster[broker].expire_session()`."""
        self[broker].expire_session()
