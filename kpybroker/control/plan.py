"""What a broker is started with, so that it can be started again with the same id, ports and directories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.config.broker import BrokerConfig

if TYPE_CHECKING:
    import socket

    from kpybroker.broker.app import Broker


class Processes(NamedTuple):
    """The cluster of `brokers` processes that this process has one broker of, where one of them keeps the tree.

    `credentials`, `user:password`, admit to the tree; None: it is for everybody. `tree_file` and `listener` are for the
    one that keeps it: its file, None for one in a log directory, and a socket that listens for the others.
    """

    brokers: int
    credentials: str | None = None
    tree_file: Path | None = None
    listener: socket.socket | None = None


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """A broker that can be started. `props` are its static properties, as `BrokerConfig` takes them."""

    broker_id: int
    props: Mapping[str, str]

    @classmethod
    def of(cls, config: BrokerConfig) -> BrokerPlan:
        """The plan of a broker with this configuration."""
        return cls(config.get_int("broker.id"), dict(config.static))

    def config(self) -> BrokerConfig:
        """A configuration for one start: a broker's dynamic values are not kept from one to the next."""
        return BrokerConfig(self.props)

    def pinned(self, broker: Broker) -> BrokerPlan:
        """The plan with the id and the ports that the running broker took, where it was free to choose."""
        ports = {bound.name: bound.listener.address[1] for bound in broker.bound}
        listeners = ",".join(
            listener_text(endpoint.listener_name, endpoint.host, ports[endpoint.listener_name])
            for endpoint in broker.config.listeners
        )
        return BrokerPlan(broker.node_id, {**self.props, "broker.id": str(broker.node_id), "listeners": listeners})

    def copied(self, broker_id: int, directory: Path, rack: str | None) -> BrokerPlan:
        """The plan of another broker that is configured as this one, on free ports, with a directory of its own."""
        listeners = ",".join(listener_text(one.listener_name, one.host, 0) for one in self.config().listeners)
        own = {
            "broker.id": str(broker_id),
            "node.id": str(broker_id),
            "listeners": listeners,
            "log.dirs": str(directory),
        }
        props = {name: text for name, text in self.props.items() if name not in ("broker.rack", "log.dir")}
        return BrokerPlan(broker_id, {**props, **own, **({"broker.rack": rack} if rack is not None else {})})


def listener_text(name: str, host: str, port: int) -> str:
    """An item of `listeners`; an IPv6 host is put in brackets."""
    return f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"
