"""Checks of a cluster through one broker: versions, login, and the addresses that its brokers advertise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kpybroker.client.connect import sasl
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.versions import is_controller_only, looks_like
from kpybroker.client.connect.wire import WireBroker, WireError
from kpybroker.client.doctor import ports
from kpybroker.client.doctor.findings import NOTE, SKIPPED, Findings
from kpybroker.client.doctor.ports import Address
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest


class Seen(NamedTuple):
    """What the checks have in common."""

    settings: Settings
    findings: Findings
    encrypted: bool


def check_versions(broker: WireBroker, findings: Findings) -> bool:
    """Whether it is a broker that clients can use."""
    name = f"{broker.address[0]}:{broker.address[1]}"
    if is_controller_only(broker.versions):
        fix = "use a listener that is not in controller.listener.names"
        findings.failed("versions", f"{name} is the listener of a KRaft controller, which serves no clients", fix)
        return False
    findings.ok("versions", f"{name} looks like Kafka {looks_like(broker.versions)} ({len(broker.versions)} APIs)")
    return True


def check_login(broker: WireBroker, seen: Seen) -> bool:
    """Whether requests are accepted: without a login, or with the configured one."""
    settings, findings = seen.settings, seen.findings
    wants_sasl = settings.protocol.startswith("SASL")
    if not wants_sasl and _serves(broker):
        return True
    with ports.open_broker(broker.address, settings, encrypted=seen.encrypted) as other:
        mechanisms = _mechanisms(other, sasl.mechanism(settings.properties) if wants_sasl else "NONE")
    if mechanisms is None:
        if wants_sasl:
            protocol = settings.protocol.removeprefix("SASL_")
            fix = f"set security.protocol={protocol}, or use the port of a listener with SASL"
            findings.failed("login", "the listener has no login, and the client has one", fix)
            return False
        return True
    offered = ", ".join(mechanisms) or "none"
    if not wants_sasl:
        protocol = "SASL_SSL" if seen.encrypted else "SASL_PLAINTEXT"
        fix = f"set security.protocol={protocol}, sasl.mechanism and sasl.jaas.config in --command-config"
        findings.failed("login", f"the listener wants a login ({offered}), and the client has none", fix)
        return False
    if sasl.mechanism(settings.properties) not in mechanisms:
        mine = sasl.mechanism(settings.properties)
        findings.failed(
            "login", f"the listener offers {offered}, and the client has {mine}", "set sasl.mechanism to one of these"
        )
        return False
    return True


def _serves(broker: WireBroker) -> bool:
    """Whether it serves a request without a login. A listener with logins closes the connection instead."""
    try:
        metadata(broker, False)
    except WireError:
        return False
    return True


def _mechanisms(broker: WireBroker, mechanism: str) -> list[str] | None:
    """What the listener offers; None if it has no SASL. The connection is used up."""
    if ApiKey.SASL_HANDSHAKE not in broker.versions:
        return None
    try:
        response = broker.request(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))
    except WireError:
        return None  # some brokers close a listener without SASL here
    return None if response.error_code == ErrorCode.ILLEGAL_SASL_STATE else list(response.mechanisms)


def log_in(broker: WireBroker, seen: Seen) -> bool:
    """Log in as configured, where the mechanism is one of ours."""
    if not seen.settings.protocol.startswith("SASL"):
        return True
    try:
        broker.login(seen.settings.properties)
    except CommandError as error:
        if error.exit_code == 1:
            fix = "check the user name and the password in --command-config"
            seen.findings.failed("login", error.cause, fix)
        else:
            seen.findings.add("login", SKIPPED, error.cause)
        return False
    seen.findings.ok("login", f"{sasl.mechanism(seen.settings.properties)} is accepted")
    return True


@contextmanager
def opened(address: Address, seen: Seen) -> Iterator[WireBroker]:
    """A connection to a broker that serves requests. Raises CommandError."""
    with ports.open_broker(address, seen.settings, encrypted=seen.encrypted) as broker:
        if seen.settings.protocol.startswith("SASL"):
            broker.login(seen.settings.properties)
        yield broker


# --- what the brokers advertise


def metadata(broker: WireBroker, topics: bool) -> Any:
    """Metadata of no topic, or of all."""
    return broker.request(ApiKey.METADATA, MetadataRequest(topics=None if topics else []))


def check_brokers(found: Any, given: Address, ips: list[str], seen: Seen) -> None:
    """The controller, and each advertised address."""
    findings = seen.findings
    brokers = sorted(found.brokers, key=lambda one: one.node_id)
    if not brokers:
        findings.failed("brokers", "the cluster names no broker", "wait until the brokers have registered")
        return
    ids = ", ".join(str(one.node_id) for one in brokers)
    if found.controller_id < 0:
        fix = "look into the brokers' logs: without a controller no topic is created and no leader elected"
        findings.failed("brokers", f"cluster {found.cluster_id} has no controller", fix)
    else:
        findings.ok("brokers", f"cluster {found.cluster_id}: {ids}; the controller is {found.controller_id}")
    for one in brokers:
        _check_advertised(one, found.cluster_id, given, ips, seen)
    if given not in [(one.host, one.port) for one in brokers]:
        others = ", ".join(f"{one.host}:{one.port}" for one in brokers)
        findings.add("advertised", NOTE, f"clients begin at {given[0]}:{given[1]} and go on to {others}")


def _check_advertised(one: Any, cluster_id: str | None, given: Address, ips: list[str], seen: Seen) -> None:
    """One broker: every client connects to the address that the broker advertises, whatever it began with."""
    findings, name = seen.findings, f"broker {one.node_id} advertises {one.host}:{one.port}"
    fix = f"set advertised.listeners of broker {one.node_id} to an address that clients reach, and restart it"
    if ports.is_unspecified(one.host):
        findings.failed("advertised", f"{name}, which no client can connect to", fix)
        return
    is_far = not any(ports.is_loopback(ip) for ip in ips)
    if ports.is_loopback(one.host) and is_far:
        findings.failed("advertised", f"{name}: for a client on another machine, that is the client's own", fix)
        return
    try:
        ports.resolve(one.host, one.port)
    except OSError:
        findings.failed("advertised", f"{name}, a name that has no address here", f"{fix}; or add the name to DNS")
        return
    try:
        with opened((one.host, one.port), seen) as broker:
            other = metadata(broker, False).cluster_id
    except CommandError as error:
        findings.failed("advertised", f"{name}: {error.cause}", fix)
        return
    if other != cluster_id:
        findings.failed("advertised", f"{name}, where a broker of another cluster ({other}) responds", fix)
    elif (one.host, one.port) != given:
        findings.ok("advertised", f"{name}, which responds")
