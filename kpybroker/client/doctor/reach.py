"""Checks of one address: does its name resolve, does it accept connections, does it speak what the client does."""

from __future__ import annotations

import ssl
import time
from typing import Any, Final

from kpybroker.client.connect import tls
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.client.doctor import ports
from kpybroker.client.doctor.findings import Findings
from kpybroker.client.doctor.ports import Address

SLOW_MS: Final = 200.0
EXPIRES_SOON_DAYS: Final = 14

CERTIFICATE_FIXES: Final = {
    9: "set this machine's clock; if it is right, issue the certificate again",
    10: "issue the broker's certificate again: it has expired",
    18: "trust it: ssl.ca.location=FILE in --command-config, with the certificate itself as PEM",
    19: "trust its authority: ssl.ca.location=FILE in --command-config (Java: ssl.truststore.location)",
    20: "trust its authority: ssl.ca.location=FILE in --command-config (Java: ssl.truststore.location)",
    21: "trust its authority: ssl.ca.location=FILE in --command-config (Java: ssl.truststore.location)",
    62: "use a name that the certificate has, or issue it with this name as subjectAltName",
    64: "use a name that the certificate has, or issue it with this address as subjectAltName",
}
"""By OpenSSL's code of the verification error."""


def check_name(host: str, port: int, findings: Findings) -> list[str]:
    """The host's addresses; empty if it has none."""
    try:
        found = ports.resolve(host, port)
    except OSError as error:
        fix = "correct the name, or add it to DNS or /etc/hosts"
        findings.failed("name", f"{host} has no address: {error.strerror or error}", fix)
        return []
    if found != [host]:
        findings.ok("name", f"{host} is {', '.join(found)}")
    return found


def check_connections(host: str, port: int, ips: list[str], settings: Settings, findings: Findings) -> bool:
    """Whether any of the addresses accepts a connection; clients try all of them."""
    failures: list[tuple[str, OSError]] = []
    reached: list[str] = []
    for ip in ips:
        at = f"{_bracketed(ip)}:{port}"
        try:
            taken = ports.connect_time_ms(ip, port, settings)
        except OSError as error:
            failures.append((at, error))
            continue
        reached.append(ip)
        if taken > SLOW_MS:
            fix = "expect slow requests: the network between here and there takes this long"
            findings.warning("connection", f"{at} accepts connections, in {taken:.0f} ms", fix)
        else:
            findings.ok("connection", f"{at} accepts connections ({taken:.1f} ms)")
    for at, why in failures:
        text = f"{at} cannot be reached: {_reason(why)}"
        if reached:
            fix = f"some clients try it first and wait: let the broker listen there too, or use {reached[0]}"
            findings.warning("connection", text, fix)
        else:
            findings.failed("connection", text, _connection_fix(why, port))
    return bool(reached)


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def _reason(error: OSError) -> str:
    return "no response" if isinstance(error, TimeoutError) else error.strerror or str(error)


def _connection_fix(error: OSError, port: int) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"start the broker, let it listen on this address and not only on loopback, or correct the port {port}"
    if isinstance(error, TimeoutError):
        return f"open port {port} in the firewalls between here and there, or correct the address"
    return "check the network and the address"


def check_speech(address: Address, settings: Settings, findings: Findings) -> bool | None:
    """Whether the port is encrypted; None if Kafka's protocol is not spoken there."""
    host, port = address
    wants_tls = tls.is_tls(settings.protocol)
    try:
        found = ports.speech(address, settings.timeout_s, ports.trusting(settings) if wants_tls else None)
    except OSError as error:
        findings.failed(
            "protocol", f"{host}:{port} stopped accepting connections: {_reason(error)}", "is it restarting?"
        )
        return None
    if found.kind == ports.KAFKA:
        _plain(f"{host}:{port}", settings, findings, wants_tls)
        return False
    if found.kind == ports.TLS:
        if not wants_tls:
            protocol = settings.protocol.replace("PLAINTEXT", "SSL")
            fix = f"set security.protocol={protocol} in --command-config (-X security.protocol={protocol})"
            findings.failed("protocol", f"{host}:{port} is encrypted, and the client speaks {settings.protocol}", fix)
        else:
            _certificate(address, settings, findings)
        return True
    text, fix = NOT_KAFKA[found.kind]
    findings.failed("protocol", text.format(f"{host}:{port}", found.head[:20]), fix)
    return None


NOT_KAFKA: Final = {
    ports.HTTP: ("{0} is an HTTP server", "use the port of a listener of the broker, by default 9092"),
    ports.ZOOKEEPER: ("{0} is ZooKeeper, not a broker", "use the port of a listener of the broker, by default 9092"),
    ports.CLOSED: (
        "{0} closes the connection without a response",
        "look into the broker's log: it may refuse this address (max.connections, a proxy), or be no Kafka at all",
    ),
    ports.SILENT: (
        "{0} accepts connections and says nothing",
        "look whether the broker is paused or overloaded, or starting; a proxy may accept for a broker that is down",
    ),
    ports.OTHER: ("{0} is no Kafka: it says {1!r}", "use the port of a listener of the broker, by default 9092"),
}


def _plain(name: str, settings: Settings, findings: Findings, wants_tls: bool) -> None:
    if wants_tls:
        protocol = settings.protocol.replace("SSL", "PLAINTEXT")
        fix = f"set security.protocol={protocol}, or use the port of the broker's encrypted listener"
        findings.failed("protocol", f"{name} is not encrypted, and the client speaks {settings.protocol}", fix)
    else:
        findings.ok("protocol", f"{name} speaks Kafka's protocol, not encrypted")


def _certificate(address: Address, settings: Settings, findings: Findings) -> None:
    name = f"{address[0]}:{address[1]}"
    try:
        certificate, version = ports.verified(address, settings)
    except ssl.SSLCertVerificationError as error:
        fix = CERTIFICATE_FIXES.get(error.verify_code, "check the certificates of both sides")
        findings.failed("certificate", f"{name}: {error.verify_message.rstrip('.')}", fix)
        return
    except (OSError, CommandError) as error:
        fix = error.fix if isinstance(error, CommandError) else "compare ssl.protocol and the ciphers of both sides"
        findings.failed("certificate", f"{name}: {error}", fix)
        return
    findings.ok("protocol", f"{name} speaks Kafka's protocol over {version}")
    _expiry(name, certificate, findings)


def _expiry(name: str, certificate: dict[str, Any], findings: Findings) -> None:
    end = certificate.get("notAfter")
    if end is None:
        return
    days = int((ssl.cert_time_to_seconds(end) - time.time()) // 86400)
    if days < EXPIRES_SOON_DAYS:
        findings.warning("certificate", f"{name}: it expires in {days} days", "issue the broker's certificate again")
    else:
        findings.ok("certificate", f"{name}: trusted, valid until {end}")
