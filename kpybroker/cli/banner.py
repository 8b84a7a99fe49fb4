"""What `kpybroker dev` and `kpybroker server` say once the broker is ready.

The ready line is for programs, and the only line on standard output. As text it does not change between versions:
`kpybroker ready at HOST:PORT`, the first listener's bound address (an IPv6 host in brackets). Fields of the form
`name=value` may follow, separated by blanks; a program ignores those that it does not know. With `--log-format json`
the line is one JSON object, to which fields may be added.

The banner is for people: it goes to standard error and may change. No line of it is wider than the terminal, so that
none is wrapped inside an address; a command goes on in the next line after a backslash, as shells and Python read it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

WIDTH: Final = 80
"""Where there is no terminal."""
LABEL = re.compile(r"(?P<indent>  (?:  )?)(?P<label>[A-Za-z]+)(?P<gap> +|$)")
OF_A_FILE: Final = "      "
"""How a line of a properties file begins, which has to stay one line."""
COMMANDS: Final = ("echo ", "kcat ", "kpybroker ", "python ", "spark.")
CLAUSE = re.compile(r"(?<=&&) |(?<=;) ")
OPTION, GLUE = re.compile(r"(?<=\s)(--?\w[\w-]*) (?=[^-&|\s])"), "\0"
"""An option stays with its value."""
ADDRESS = re.compile(r"https?://\S+|(?<![\w.:/])(?:[\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}(?![\w.:])")
BOLD, GREEN, PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[0m"


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


def banner(facts: Facts, width: int = WIDTH, *, coloured: bool = False) -> str:
    """What a person wants to know and can try, in lines of `width` at most, if a word is no wider."""
    lines = [
        f"  {_brokers(facts.nodes)} of cluster {facts.cluster_id}, kpybroker {facts.version}",
        *_addresses(facts.nodes),
        f"  data     {', '.join(facts.log_dirs)}",
        f"  tree     {facts.coordination}{_for_zookeeper(facts)}",
        f"  durable  {durability(facts.ephemeral, facts.fsync_each)}",
        *(f"  metrics  {address}" for address in facts.metrics),
        *([] if facts.console is None else [f"  console  {facts.console}"]),
        *([] if facts.registry is None else [f"  registry {facts.registry}"]),
        *(facts.clients or _plain_clients(reachable(facts.nodes[0].addresses[0]))),
        "  stop     Ctrl-C",
    ]
    folded = [part for line in lines for part in fold(line, width)]
    return "\n".join(colour(line) for line in folded) if coloured else "\n".join(folded)


def show(facts: Facts) -> None:
    """The banner on standard error, as wide as the terminal and in colour where there is one. Raises OSError."""
    is_terminal = sys.stderr.isatty()
    width = shutil.get_terminal_size((WIDTH, 25)).columns if is_terminal else WIDTH
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    sys.stderr.write(f"{banner(facts, width, coloured=is_terminal and not plain)}\n")
    sys.stderr.flush()


def fold(line: str, width: int) -> list[str]:
    """The line, or where it is too wide its parts, which begin where its text does."""
    found = LABEL.match(line)
    if len(line) <= width or found is None or line.startswith(OF_A_FILE):
        return [line]
    import textwrap

    head, text = line[: found.end()], line[found.end() :]
    is_command = text.startswith(COMMANDS)
    end = " \\" if is_command else ""
    room = max(width - len(head) - len(end), 1)
    clauses = CLAUSE.split(OPTION.sub(rf"\1{GLUE}", text)) if is_command else [text]
    wrapped = (textwrap.wrap(clause, room, break_long_words=False, break_on_hyphens=False) for clause in clauses)
    parts = [part.replace(GLUE, " ") for clause in wrapped for part in clause]
    ends = [end] * (len(parts) - 1) + [""]
    return [f"{head if number == 0 else ' ' * len(head)}{part}{ends[number]}" for number, part in enumerate(parts)]


def colour(line: str) -> str:
    """Labels bold, addresses green."""
    found = LABEL.match(line)
    start = 0 if found is None or line.startswith(OF_A_FILE) else found.end("label")
    label = line[:start].replace(found["label"], f"{BOLD}{found['label']}{PLAIN}") if start and found else ""
    return label + ADDRESS.sub(lambda address: f"{GREEN}{address[0]}{PLAIN}", line[start:])


def _for_zookeeper(facts: Facts) -> str:
    return "" if facts.zookeeper is None else f"; for clients of ZooKeeper at {facts.zookeeper}"


def _plain_clients(at: str) -> list[str]:
    return [
        "  try",
        f"    kcat     echo hello | kcat -P -b {at} -t demo && kcat -C -b {at} -t demo -e",
        "    Python   "
        f"python -c \"from confluent_kafka import Producer as P; p = P({{'bootstrap.servers': '{at}'}}); "
        "p.produce('demo', 'hello'); p.flush()\"",
        f'    PySpark  spark.read.format("kafka").option("subscribe", "demo") '
        f'.option("kafka.bootstrap.servers", "{at}").load()',
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
