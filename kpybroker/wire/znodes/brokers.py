"""The controller, the cluster and the brokers: bytes <-> values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kpybroker.wire.map_order import java_hash_map_order
from kpybroker.wire.znodes.jackson import (
    ZnodeError,
    immutable,
    integer,
    mutable,
    ordered,
    parse,
    string,
    to_json,
)
from kpybroker.wire.znodes.paths import CLUSTER_ID, CONTROLLER, broker_path


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """`/controller`: the broker that is the controller, since `timestamp_ms`."""
    values = {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    return to_json(immutable(values))


def decode_controller(data: bytes | None) -> int:
    """The controller's broker id."""
    return parse(CONTROLLER, data, lambda values: integer(values["brokerid"]))


def encode_number(value: int) -> bytes:
    """`/controller_epoch` and `/consumers/<group>/offsets/<topic>/<partition>`: decimal text."""
    return str(value).encode()


def decode_number(data: bytes | None) -> int:
    """The integer; ZnodeError for anything but decimal text."""
    try:
        return int((data or b"").decode("ascii"))
    except ValueError as error:
        raise ZnodeError(f"not a number: {data!r}") from error


def encode_cluster_id(cluster_id: str) -> bytes:
    """The value of `/cluster/id`."""
    return to_json(immutable({"version": "1", "id": cluster_id}))


def decode_cluster_id(data: bytes | None) -> str:
    """The cluster id, 22 characters of base 64."""
    return parse(CLUSTER_ID, data, lambda values: string(values["id"]))


_DEFAULT_PROTOCOLS = {name: name for name in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a broker. `host` is without brackets; `listener_name` is in upper case."""

    host: str
    port: int
    listener_name: str
    security_protocol: str


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """`/brokers/ids/<id>`. `features` maps a name to its least and greatest supported level."""

    endpoints: tuple[Endpoint, ...]
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    version: int = 5
    """5 from inter.broker.protocol.version 2.7 on, 4 from 0.10.0 on, else 2."""


def encode_broker(registration: BrokerRegistration) -> bytes:
    """The value of `/brokers/ids/<id>` in the registration's version."""
    endpoints = registration.endpoints
    # Host and port are for the oldest clients, which know PLAINTEXT only.
    plaintext = next((e for e in endpoints if e.security_protocol == "PLAINTEXT"), None)
    values: dict[str, Any] = {
        "version": registration.version,
        "host": plaintext.host if plaintext else None,
        "port": plaintext.port if plaintext else -1,
        "endpoints": [_connection_string(e) for e in endpoints],
        "jmx_port": registration.jmx_port,
        "timestamp": str(registration.timestamp_ms),
    }
    if registration.rack is not None and registration.version >= 3:
        values["rack"] = registration.rack
    if registration.version >= 4:
        protocols = {e.listener_name: e.security_protocol for e in endpoints}
        values["listener_security_protocol_map"] = immutable(protocols)
    if registration.version >= 5:
        features = {
            name: ordered({"min_version": max(low, 1), "max_version": high}, java_hash_map_order)
            for name, (low, high) in registration.features.items()
        }
        values["features"] = ordered(features, java_hash_map_order)
    return to_json(mutable(values, literal=6))


def _from_zero(lowest: int) -> int:
    """Levels in a registration begin at 1, and tools older than Kafka 3.9 refuse a 0: to have no level is always
    supported.
    """
    return 0 if lowest == 1 else lowest


def _connection_string(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener_name}://{host}:{endpoint.port}"


_ENDPOINT = re.compile(r"^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$")


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _ENDPOINT.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not an endpoint")
    listener_name = match[1].upper()
    return Endpoint(match[2], int(match[3]), listener_name, protocols[listener_name])


def _broker(values: dict[str, Any]) -> BrokerRegistration:
    version = integer(values["version"])
    if version < 1:
        raise ValueError(f"unsupported version {version}")
    endpoints: tuple[Endpoint, ...]
    if version == 1:
        endpoints = (Endpoint(string(values["host"]), integer(values["port"]), "PLAINTEXT", "PLAINTEXT"),)
    else:
        protocols = values.get("listener_security_protocol_map") or _DEFAULT_PROTOCOLS
        endpoints = tuple(_endpoint(string(text), protocols) for text in values["endpoints"])
    features = values.get("features") or {}
    return BrokerRegistration(
        endpoints,
        int(values.get("timestamp", -1)),
        values.get("rack"),
        integer(values["jmx_port"]),
        {name: (_from_zero(integer(r["min_version"])), integer(r["max_version"])) for name, r in features.items()},
        version,
    )


def decode_broker(broker_id: int, data: bytes | None) -> BrokerRegistration:
    """The registration at `/brokers/ids/<id>`, of any version from 1 on. Raises ZnodeError."""
    return parse(broker_path(broker_id), data, _broker)
