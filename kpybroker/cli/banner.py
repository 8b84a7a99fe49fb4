"""What `kpybroker dev` and `kpybroker server` say once the broker is ready.

The ready line is for programs, and the only line on standard output. As text it does not change between versions:
`kpybroker ready at HOST:PORT`, the first listener's bound address (an IPv6 host in brackets). Fields of the form
`name=value` may follow, separated by blanks; a program ignores those that it does not know. With `--log-format json`
the line is one JSON object, to which fields may be added.

The banner is for people: it goes to standard error and may change.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple


class Address(NamedTuple):
    """A listener and the address it is bound to."""

    listener_name: str
    host: str
    port: int

    @classmethod
    def of(cls, listener_name: str, text: str) -> Address:
        """The reverse of `str`."""
        host, _, port = text.rpartition(":")
        return cls(listener_name, host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Node(NamedTuple):
    """A broker of this process with its listeners, in the order of `listeners`. `pid`: of a process of its own."""

    node_id: int
    addresses: Sequence[Address]
    pid: int | None = None


class Facts(NamedTuple):
    """What is known of the brokers of this process.

    `fsync_each`: every message is fsynced. `control`: where the control channel is, if there is one.
    `clients`: the lines on what clients set, where that is more than an address. `metrics`: where each broker that
    has metrics serves them. `console`, `registry`: where the children of `dev` are. `zookeeper`: where the
    tree is served to clients of ZooKeeper.
    """

    nodes: Sequence[Node]
    cluster_id: str
    version: str
    log_dirs: Sequence[str]
    coordination: str
    ephemeral: bool
    fsync_each: bool
    control: str | None = None
    clients: Sequence[str] = ()
    metrics: Sequence[str] = ()
    console: str | None = None
    registry: str | None = None
    zookeeper: str | None = None


_REACHABLE = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "": "127.0.0.1"}


def reachable(address: Address) -> str:
    """The address for clients on this machine: loopback if the broker listens on every interface."""
    return str(address._replace(host=_REACHABLE.get(address.host, address.host)))


def bootstrap_servers(nodes: Sequence[Node]) -> str:
    """The first listener of each broker, for `bootstrap.servers` of a client on this machine."""
    return ",".join(reachable(node.addresses[0]) for node in nodes)


def ready_line(facts: Facts) -> str:
    """The line for programs, as text."""
    fields = [f"kpybroker ready at {facts.nodes[0].addresses[0]}"]
    if len(facts.nodes) > 1:
        fields.append(f"bootstrap.servers={bootstrap_servers(facts.nodes)}")
    if facts.control is not None:
        fields.append(f"control={facts.control}")
    if facts.zookeeper is not None:
        fields.append(f"zookeeper={facts.zookeeper}")
    if facts.registry is not None:
        fields.append(f"registry={facts.registry}")
    if facts.console is not None:
        fields.append(f"console={facts.console}")
    return " ".join(fields)


def ready_json(facts: Facts) -> str:
    """The line for programs, as a JSON object."""
    import json

    return json.dumps(
        {
            "event": "ready",
            "address": str(facts.nodes[0].addresses[0]),
            "bootstrapServers": bootstrap_servers(facts.nodes),
            "pid": os.getpid(),
            "version": facts.version,
            "clusterId": facts.cluster_id,
            "brokers": [
                {
                    "nodeId": node.node_id,
                    "listeners": {address.listener_name: str(address) for address in node.addresses},
                    **({} if node.pid is None else {"pid": node.pid}),
                }
                for node in facts.nodes
            ],
            "logDirs": list(facts.log_dirs),
            "ephemeral": facts.ephemeral,
            "control": facts.control,
            "metrics": list(facts.metrics),
            "console": facts.console,
            "registry": facts.registry,
            "zookeeper": facts.zookeeper,
        }
    )


def banner(facts: Facts) -> str:
    """What a person wants to know and can try."""
    at = bootstrap_servers(facts.nodes)
    lines = [
        f"  {_brokers(facts.nodes)} of cluster {facts.cluster_id}, kpybroker {facts.version}",
        *_addresses(facts.nodes),
        f"  data     {', '.join(facts.log_dirs)}",
        f"  tree     {facts.coordination}{_for_zookeeper(facts)}",
        f"  durable  {durability(facts.ephemeral, facts.fsync_each)}",
        *(f"  metrics  {address}" for address in facts.metrics),
        *([] if facts.console is None else [f"  console  {facts.console}"]),
        *([] if facts.registry is None else [f"  registry {facts.registry}"]),
        *(facts.clients or _plain_clients(at)),
        "  stop     Ctrl-C",
    ]
    return "\n".join(lines)


def _for_zookeeper(facts: Facts) -> str:
    return "" if facts.zookeeper is None else f"; for clients of ZooKeeper at {facts.zookeeper}"


def _plain_clients(at: str) -> list[str]:
    return [
        "  try",
        f"    kcat     echo hello | kcat -P -b {at} -t demo && kcat -C -b {at} -t demo -e",
        "    Python   "
        f"python -c \"from confluent_kafka import Producer as P; p = P({{'bootstrap.servers': '{at}'}}); "
        "p.produce('demo', 'hello'); p.flush()\"",
        f'    PySpark  spark.read.format("kafka").option("kafka.bootstrap.servers", "{at}")'
        '.option("subscribe", "demo").load()',
    ]


def _brokers(nodes: Sequence[Node]) -> str:
    ids = ", ".join(str(node.node_id) for node in nodes)
    return f"broker   {ids}" if len(nodes) == 1 else f"brokers  {ids}"


def _addresses(nodes: Sequence[Node]) -> list[str]:
    """The addresses that the ready line does not say."""
    if len(nodes) == 1:
        return [f"  also     {address.listener_name} at {address}" for address in nodes[0].addresses[1:]]
    return [f"  at       {', '.join(str(address) for address in node.addresses)}" for node in nodes]


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
