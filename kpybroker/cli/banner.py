"""What `kpybroker dev` and `kpybroker server` print once the broker is ready.

The first line is for programs and stays as it is: `kpybroker ready at HOST:PORT`, the first listener's bound address
(an IPv6 host in brackets). What follows is for people and may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Address(NamedTuple):
    listener_name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "": "127.0.0.1"}


def reachable(address: Address) -> str:
    """The address to type on this machine: every interface is reached through loopback."""
    return str(address._replace(host=_REACHABLE.get(address.host, address.host)))


def ready_line(addresses: Sequence[Address]) -> str:
    return f"kpybroker ready at {addresses[0]}"


def banner(
    addresses: Sequence[Address],
    *,
    node_id: int,
    cluster_id: str,
    version: str,
    log_dirs: Sequence[str],
    coordination: str,
    ephemeral: bool,
    fsync_each: bool,
) -> str:
    """Every line but the first."""
    at = reachable(addresses[0])
    lines = [
        f"  broker   {node_id} of cluster {cluster_id}, kpybroker {version}",
        f"  data     {', '.join(log_dirs)}",
        f"  tree     {coordination}",
        f"  durable  {durability(ephemeral, fsync_each)}",
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
    if ephemeral:
        return "nothing: --ephemeral, all of it is removed when the broker stops"
    if fsync_each:
        return "every acknowledged message, also over a power cut"
    return (
        "topics, offsets and every acknowledged message, also when the broker is killed; for a power cut, "
        "set log.flush.interval.messages=1"
    )
