"""What the banner of `kpybroker server` says of clients where the first listener has TLS or logins.

The certificates and users are the operator's own, so that the lines have words in capitals for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.config.jaas import listener_key
from kpybroker.control.development.security import MODULES

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

AUTHORITY, CERTIFICATE, USER, PASSWORD = "CA.pem", "CLIENT.pem", "USER", "PASSWORD"
SCRAM_MODULE: Final = MODULES["SCRAM-SHA-256"]
PASSWORD_MODULES: Final = {"SCRAM-SHA-512": SCRAM_MODULE, "SCRAM-SHA-256": SCRAM_MODULE, "PLAIN": MODULES["PLAIN"]}
"""Mechanisms with user and password, the preferred one first -> the login module of Java."""


class _Listener(NamedTuple):
    protocol: str
    mechanisms: tuple[str, ...]
    wants_certificate: bool

    @property
    def mechanism(self) -> str | None:
        """The one that is shown."""
        known = [name for name in PASSWORD_MODULES if name in self.mechanisms]
        return next(iter(known or self.mechanisms), None)


def lines(config: BrokerConfig, at: str) -> list[str]:
    """The lines for clients at the first listener; none if it has neither TLS nor logins."""
    endpoint = config.listeners[0]
    protocol, name = endpoint.security_protocol, endpoint.listener_name
    if protocol == "PLAINTEXT":
        return []
    has_logins = protocol.startswith("SASL")
    mechanisms = config.get_list(listener_key(name, "sasl.enabled.mechanisms")) if has_logins else ()
    wants = protocol == "SSL" and config.get_str(listener_key(name, "ssl.client.auth")) == "required"
    listener = _Listener(protocol, tuple(mechanisms), wants)
    files = [AUTHORITY] if protocol.endswith("SSL") else []
    files += [CERTIFICATE] if wants else []
    files += [USER, PASSWORD] if listener.mechanism in PASSWORD_MODULES else []
    kcat = " ".join(f"-X {key}={value}" for key, value in _librdkafka(listener).items())
    return [
        *([f"  logins   {', '.join(mechanisms)}"] if has_logins else []),
        f"  clients  {protocol}" + (f", with your {', '.join(files)}" if files else ""),
        f"    kcat     kcat -L -b {at} {kcat}",
        "    Java     a properties file:",
        *(f"      {key}={value}" for key, value in {"bootstrap.servers": at, **_java(listener)}.items()),
        f"    check    kpybroker doctor {at} --command-config FILE",
    ]


def _librdkafka(listener: _Listener) -> dict[str, str]:
    keys = {"security.protocol": listener.protocol}
    if listener.protocol.endswith("SSL"):
        keys["ssl.ca.location"] = AUTHORITY
    if listener.wants_certificate:
        keys |= {"ssl.certificate.location": CERTIFICATE, "ssl.key.location": CERTIFICATE}
    if listener.mechanism is not None:
        keys["sasl.mechanisms"] = listener.mechanism
    if listener.mechanism in PASSWORD_MODULES:
        keys |= {"sasl.username": USER, "sasl.password": PASSWORD}
    return keys


def _java(listener: _Listener) -> dict[str, str]:
    keys = {"security.protocol": listener.protocol}
    if listener.protocol.endswith("SSL"):
        keys |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": AUTHORITY}
    if listener.wants_certificate:
        keys |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": CERTIFICATE}
    if listener.mechanism is not None:
        keys["sasl.mechanism"] = listener.mechanism
    module = PASSWORD_MODULES.get(listener.mechanism or "")
    if module is not None:
        keys["sasl.jaas.config"] = f'{module} required username="{USER}" password="{PASSWORD}";'
    return keys
