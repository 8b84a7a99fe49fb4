"""What `kpybroker dev` and `kpybroker server` print once the broker is ready.

The first line is for programs and does not change: `kpybroker ready at HOST:PORT`, the first listener's bound address
(an IPv6 host in brackets). The other lines are for people and may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Address(NamedTuple):
    """A listener and the address it is bound to."""

    listener_name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "": "127.0.0.1"}


def reachable(address: Address) -> str:
    """The address for clients on this machine: loopback if the broker listens on every interface."""
    return str(address._replace(host=_REACHABLE.get(address.host, address.host)))


def ready_line(addresses: Sequence[Address], control: tuple[str, int] | None = None) -> str:
    """The first line, with the first listener's address, and ` control=http://HOST:PORT` if there is a channel."""
    field = "" if control is None else f" control=http://{control[0]}:{control[1]}"
    return f"kpybroker ready at {addresses[0]}{field}"


class BrokerFacts(NamedTuple):
    """What the banner says of the broker. `version` is kpybroker's; `fsync_each`: every message is fsynced."""

    node_id: int
    cluster_id: str
    version: str
    log_dirs: Sequence[str]
    coordination: str
    ephemeral: bool
    fsync_each: bool


def banner(addresses: Sequence[Address], facts: BrokerFacts) -> str:
    """Every line but the first."""
    at = reachable(addresses[0])
    lines = [
        f"  broker   {facts.node_id} of cluster {facts.cluster_id}, kpybroker {facts.version}",
        f"  data     {', '.join(facts.log_dirs)}",
        f"  tree     {facts.coordination}",
        f"  durable  {durability(facts.ephemeral, facts.fsync_each)}",
    ]
    lines += [f"  also     {address.listener_name} at {address}" for address in addresses[1:]]
    lines += [
        "  try",
        f"    kcat     echo hello | kcat -P -b {at} -t demo && kcat -C -b {at} -t demo -e",
        "    Python   "
        f"python -c \"from confluent_kafka import Producer as P; p = P({{'bootstrap.servers': '{at}'}}); "
        "p.produce('demo', 'hello'); p.flush()\"",
        f'    PySpark  spark.read.format("kafka").option("kafka.bootstrap.servers", "{at}")'
        '.option("subscribe", "demo").load()',
        "  stop     Ctrl-C",
    ]
    return "\n".join(lines)


def durability(ephemeral: bool, fsync_each: bool) -> str:
    """Which data survive what, in one line."""
    if ephemeral:
        return "nothing: --ephemeral, all data are removed when the broker stops"
    if fsync_each:
        return "every acknowledged message, also after a power cut"
    return (
        "topics, offsets and every acknowledged message, also if the broker is killed; for power cuts, "
        "set log.flush.interval.messages=1"
    )
