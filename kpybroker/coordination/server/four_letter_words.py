"""The four-letter words: state in text, for people and monitors, without a session.

By default ZooKeeper serves only `srvr`. Here the words are served that change nothing and cost little;
the others are refused in ZooKeeper's own words.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kpybroker import __version__

if TYPE_CHECKING:
    from kpybroker.coordination.server.client import Client
    from kpybroker.coordination.server.service import Service

VERSION: Final = f"3.8.4-kpybroker-{__version__}, built on 2024-02-12 22:16 UTC"
"""In the form that tools read. The protocol is that of 3.8.4, whose date this is."""

_NOT_SERVED: Final = (b"crst", b"dirs", b"dump", b"gtmk", b"hash", b"orst", b"srst", b"stmk", b"telc", b"wchc", b"wchp")


def reply(word: bytes, service: Service, asking: Client) -> str | None:
    """The text that is the reply to a word; None for what is none."""
    if word in _NOT_SERVED:
        return f"{word.decode()} is not executed because it is not in the whitelist.\n"
    make = _WORDS.get(word)
    return None if make is None else make(service, asking)


def _ruok(service: Service, asking: Client) -> str:
    return "imok"


def _isro(service: Service, asking: Client) -> str:
    return "rw"


def _srvr(service: Service, asking: Client) -> str:
    return f"Zookeeper version: {VERSION}\n{_state(service)}"


def _state(service: Service) -> str:
    stats = service.statistics
    least, average, most = stats.latency_ms_min, stats.latency_ms_average, stats.latency_ms_max
    return _lines(
        (
            f"Latency min/avg/max: {least:.0f}/{average:.4f}/{most:.0f}",
            f"Received: {stats.received}",
            f"Sent: {stats.sent}",
            f"Connections: {len(service.clients)}",
            f"Outstanding: {_outstanding(service)}",
            f"Zxid: 0x{service.store.changed_zxid:x}",
            "Mode: standalone",
            f"Node count: {len(service.store.image.nodes)}",
        )
    )


def _outstanding(service: Service) -> int:
    return sum(client.is_waiting for client in service.clients)


def _stat(service: Service, asking: Client) -> str:
    clients = _lines(_brief(client, client is asking) for client in service.clients)
    return f"Zookeeper version: {VERSION}\nClients:\n{clients}\n{_state(service)}"


def _brief(client: Client, is_asking: bool) -> str:
    host, port = client.address
    flag = 0 if is_asking else 1
    return f" /{host}:{port}[{flag}](queued=0,recved={client.received},sent={client.sent})"


def _cons(service: Service, asking: Client) -> str:
    return _lines(_full(client, client is asking) for client in service.clients) + "\n"


def _full(client: Client, is_asking: bool) -> str:
    brief, session = _brief(client, is_asking), client.session
    return brief if session is None else f"{brief[:-1]},sid=0x{session.id:x},to={session.timeout_ms})"


def _conf(service: Service, asking: Client) -> str:
    limits = service.limits
    return _lines(
        (
            f"tickTime={limits.tick_ms}",
            f"maxClientCnxns={limits.connections_per_address_max}",
            f"minSessionTimeout={limits.timeout_ms_min}",
            f"maxSessionTimeout={limits.timeout_ms_max}",
            "serverId=0",
        )
    )


def _envi(service: Service, asking: Client) -> str:
    return "Environment:\n" + _lines(
        (
            f"zookeeper.version={VERSION}",
            f"python.version={platform.python_version()}",
            f"os.name={platform.system()}",
            f"os.arch={platform.machine()}",
            f"os.version={platform.release()}",
            f"process.id={os.getpid()}",
            f"byte.order={sys.byteorder}",
        )
    )


def _mntr(service: Service, asking: Client) -> str:
    stats, image = service.statistics, service.store.image
    rows = {
        "version": VERSION,
        "server_state": "standalone",
        "avg_latency": f"{stats.latency_ms_average:.4f}",
        "max_latency": f"{stats.latency_ms_max:.0f}",
        "min_latency": f"{stats.latency_ms_min:.0f}",
        "packets_received": stats.received,
        "packets_sent": stats.sent,
        "num_alive_connections": len(service.clients),
        "outstanding_requests": _outstanding(service),
        "znode_count": len(image.nodes),
        "watch_count": service.watches.total,
        "ephemerals_count": sum(map(len, image.owners.values())),
        "approximate_data_size": sum(len(path) + len(node.data or b"") for path, node in image.nodes.items()),
        "global_sessions": len(service.sessions),
    }
    return _lines(f"zk_{name}\t{value}" for name, value in rows.items())


def _wchs(service: Service, asking: Client) -> str:
    watches = service.watches
    return f"{watches.watchers} connections watching {watches.watched_paths} paths\nTotal watches:{watches.total}\n"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_WORDS: Final[dict[bytes, Callable[[Service, Client], str]]] = {
    b"ruok": _ruok,
    b"srvr": _srvr,
    b"stat": _stat,
    b"conf": _conf,
    b"cons": _cons,
    b"mntr": _mntr,
    b"envi": _envi,
    b"isro": _isro,
    b"wchs": _wchs,
}
