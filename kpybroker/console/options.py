"""What `kpybroker console` is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, NamedTuple

from kpybroker.client.connect.errors import usage
from kpybroker.client.connect.settings import Settings

LOOPBACK = ("127.0.0.1", "::1", "localhost")

Network = IPv4Network | IPv6Network
OWN_MACHINE: Final = (ip_network("127.0.0.0/8"), ip_network("::1"))


NAME: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
CONNECT: Final = re.compile(rf"(?:(?:({NAME})/)?({NAME})=)?(https?://.*)", re.DOTALL)
OF_CLUSTER: Final = re.compile(rf"(?:({NAME})=)?(https?://.*)", re.DOTALL)
CLUSTER: Final = re.compile(rf"({NAME})=(.+)", re.DOTALL)


class ConnectAddress(NamedTuple):
    """Where a Kafka Connect serves its REST. The URL may have a login. It is of every cluster, or of one."""

    name: str
    url: str
    cluster: str | None = None


class ConsoleOptions(NamedTuple):
    """The cluster and how the console is protected.

    `password` or `user_header` ask for a login; without one, the console serves this machine only. `hosts` are names
    under which browsers may reach it, besides the one that it binds and those of loopback. What a proxy says in its
    headers counts from `proxies` only. `registry` is the address of a schema registry. `metrics` are addresses of
    brokers' metrics; with `control`, those of its brokers are asked for. `connects` are Kafka Connects. `name` is the
    cluster's, where there are several.
    """

    settings: Settings
    host: str = "127.0.0.1"
    port: int = 8080
    allow_changes: bool = False
    password: str | None = None
    user_header: str | None = None
    hosts: Sequence[str] = ()
    control: str | None = None
    metrics: Sequence[str] = ()
    registry: str | None = None
    proxies: Sequence[Network] = OWN_MACHINE
    connects: Sequence[ConnectAddress] = ()
    name: str = ""

    @property
    def has_login(self) -> bool:
        """Whether a browser must log in."""
        return self.password is not None or self.user_header is not None


def parse_proxies(texts: Sequence[str]) -> Sequence[Network]:
    """The addresses and networks of `--trusted-proxy`; without one, this machine. Raises CommandError."""
    try:
        return tuple(ip_network(text) for text in texts) or OWN_MACHINE
    except ValueError as error:
        raise usage(f"--trusted-proxy: {error}", "write an address or a network, as in 10.0.0.0/8") from None


def parse_connect(text: str) -> ConnectAddress:
    """`URL`, `NAME=URL` or `CLUSTER/NAME=URL`; its name is else its host and port. Raises CommandError."""
    match = CONNECT.fullmatch(text)
    if match is None:
        raise usage("--connect is no address", "write http://HOST:PORT, or NAME=http://HOST:PORT")
    name = match[2] or match[3].partition("://")[2].partition("/")[0].rpartition("@")[2]
    return ConnectAddress(name, match[3], match[1])


def parse_cluster(text: str) -> tuple[str, str]:
    """The name and the bootstrap servers of `NAME=HOST:PORT,...`. Raises CommandError."""
    match = CLUSTER.fullmatch(text)
    if match is None:
        raise usage(f"--cluster {text[:100]!r} is no cluster", "write NAME=HOST:PORT; letters, digits, dots, - and _")
    return match[1], match[2]


class Around(NamedTuple):
    """What is around several clusters, as it was given: of one of them with `CLUSTER=` or `CLUSTER/NAME=`."""

    connects: Sequence[str] = ()
    metrics: Sequence[str] = ()
    registries: Sequence[str] = ()


def several(process: ConsoleOptions, settings: Mapping[str, Settings], around: Around) -> list[ConsoleOptions]:
    """The options of each cluster, by the options of the process. Raises CommandError."""
    if process.control is not None:
        raise usage("--control is of one broker, and there are several clusters", "start a console for it alone")
    connects = [parse_connect(text) for text in around.connects]
    metrics = [of_cluster("--metrics-url", text) for text in around.metrics]
    registries = [of_cluster("--schema-registry", text) for text in around.registries]
    for option, named in (
        ("--connect", (one.cluster for one in connects)),
        ("--metrics-url", (cluster for cluster, _ in metrics)),
        ("--schema-registry", (cluster for cluster, _ in registries)),
    ):
        for cluster in named:
            if cluster is not None and cluster not in settings:
                raise usage(f"{option} names {cluster}, which is no cluster here", f"one of {', '.join(settings)}")
    if any(cluster is None for cluster, _ in metrics):
        raise usage("--metrics-url does not say of which cluster it is", "write CLUSTER=URL")
    found = []
    for name, one in settings.items():
        registry = next((url for cluster, url in registries if cluster == name), None)
        registry = registry or next((url for cluster, url in registries if cluster is None), None)
        found.append(
            process._replace(
                name=name,
                settings=one,
                registry=registry or (None if one.registry is None else one.registry.url),
                metrics=tuple(url for cluster, url in metrics if cluster == name),
                connects=tuple(connect for connect in connects if connect.cluster in (None, name)),
            )
        )
    return found


def of_cluster(option: str, text: str) -> tuple[str | None, str]:
    """The cluster that an option names, or None, and the URL. Raises CommandError."""
    match = OF_CLUSTER.fullmatch(text)
    if match is None:
        raise usage(f"{option} is no address", "write CLUSTER=http://HOST:PORT")
    return match[1], match[2]
