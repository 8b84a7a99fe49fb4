"""Parsing of `listeners`, `advertised.listeners` and `listener.security.protocol.map`.

Syntax and error texts are Kafka's (``CoreUtils.listenerListToEndPoints``, `KafkaConfig`). An empty host is every
interface, as in Kafka. Which protocols are served: `unserved`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kpybroker.config.values import ConfigError

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NONROUTABLE: Final = "0.0.0.0"

_URI: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


class Endpoint(NamedTuple):
    """One listener. `host` "" is every interface; with `port` 0 the system chooses the port."""

    listener_name: str
    security_protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"


def parse_map(key: str, text: str) -> dict[str, str]:
    """`a:b,c:d` -> {a: b, c: d}, split at the last colon of each item; raises `ConfigError` naming `key`."""
    pairs: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, value = item.rpartition(":")
        if not colon:
            raise ConfigError(key, text, f"`{item}` is not of the form name:value")
        pairs[name.strip()] = value.strip()
    return pairs


def security_protocol_map(text: str) -> dict[str, str]:
    """Listener name -> security protocol, both in upper case. Raises `ConfigError`."""
    key = "listener.security.protocol.map"
    mapped: dict[str, str] = {}
    for name, protocol in parse_map(key, text).items():
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(key, text, f"Invalid security protocol `{protocol}` defined in {key}")
        if name.upper() in mapped:
            raise ConfigError(key, text, f"listener name {name.upper()} appears more than once")
        mapped[name.upper()] = protocol.upper()
    return mapped


def parse_endpoints(key: str, text: str, protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The endpoints of `text`, the value of `key`; raises `ConfigError` naming `key`."""
    endpoints = []
    for uri in filter(None, (part.strip() for part in text.split(","))):
        match = _URI.fullmatch(uri)
        if match is None:
            raise ConfigError(key, text, f"Unable to parse {uri} to a broker endpoint")
        name, host, port = match.group(1).upper(), match.group(2), int(match.group(3))
        if name not in protocols:
            raise ConfigError(key, text, f"No security protocol defined for listener {name}")
        if not 0 <= port <= 65535:
            raise ConfigError(key, text, f"{port} is not a port")
        endpoints.append(Endpoint(name, protocols[name], host, port))
    if len({endpoint.listener_name for endpoint in endpoints}) < len(endpoints):
        raise ConfigError(key, text, "Each listener must have a different name")
    return tuple(endpoints)


def _family(host: str) -> int:
    """4, 6, or 0 for a name or for every interface."""
    import ipaddress  # not needed by most starts

    try:
        return ipaddress.ip_address(host.partition("%")[0]).version
    except ValueError:
        return 0


def check_distinct_ports(key: str, text: str, endpoints: Iterable[Endpoint]) -> None:
    """Raise `ConfigError` if two listeners share a port, unless as one IPv4 and one IPv6 address (KIP-797)."""
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port != 0:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, sharers in by_port.items():
        if len(sharers) > 1 and sorted(_family(endpoint.host) for endpoint in sharers) != [4, 6]:
            raise ConfigError(
                key,
                text,
                f"Each listener must have a different port, but {len(sharers)} use {port} "
                "(only one IPv4 and one IPv6 address may share one)",
            )
