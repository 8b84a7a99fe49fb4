"""A locked broker, ours or Kafka's, and the callers that come to its doors.

It has an authorizer, a SASL_SSL listener for logins by SCRAM-SHA-512 and an SSL listener that requires a certificate.
The plain listener is for the tests: who arrives there is the super user, prepares topics and ACLs, and looks at what
is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from compat_tests.security.logins.sasl_sides import PASSWORD, USER, jaas, set_scram, stores
from compat_tests.support.quick import DEADLINE_S, admin_client
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from tests.support.network.certificates import PASSWORD as STORE_PASSWORD
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port

MECHANISM = "SCRAM-SHA-512"
OTHER_USER = "mallory"
PASSWORDS = {USER: PASSWORD, OTHER_USER: "mallory-secret"}
DOORS = ("scram", "mtls")


@dataclass(frozen=True, slots=True)
class Caller:
    """How a client shows who it is: a user with a password, or files with a certificate and its key."""

    bootstrap: str
    ca: str
    user: str = ""
    password: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def principal(self) -> str:
        return f"User:{self.user}" if self.user else f"User:CN={Path(self.certificate).stem}"

    def but(self, **changes: str) -> Caller:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Locked:
    """The broker is started, and its users and certificates exist: those of `alice` and of `mallory`."""

    broker: Broker
    authority: Authority
    sasl_ssl: str
    ssl: str

    @property
    def plain(self) -> str:
        return self.broker.bootstrap

    def caller(self, door: str, name: str = USER) -> Caller:
        """`name` at one of `DOORS`."""
        ca = str(self.authority.certificate)
        if door == "scram":
            return Caller(self.sasl_ssl, ca, user=name, password=PASSWORDS[name])
        directory = self.authority.directory
        return Caller(self.ssl, ca, certificate=str(directory / f"{name}.crt"), key=str(directory / f"{name}.key"))

    def allow(self, principal: str, prefix: str) -> None:
        """Let it, and no one else, write and read topics and use groups whose names begin so."""
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            ResourcePatternType,
            ResourceType,
        )

        wanted = [
            (ResourceType.TOPIC, AclOperation.READ),
            (ResourceType.TOPIC, AclOperation.WRITE),
            (ResourceType.GROUP, AclOperation.READ),
        ]
        pattern, allow = ResourcePatternType.PREFIXED, AclPermissionType.ALLOW
        bindings = [AclBinding(kind, prefix, pattern, principal, "*", operation, allow) for kind, operation in wanted]
        admin = admin_client(self.plain)
        for done in admin.create_acls(bindings).values():
            done.result(DEADLINE_S)


def start_locked(unstarted: Callable[[], Broker], directory: Path) -> Locked:
    """Configure and start the broker; certificates go to the directory."""
    authority = Authority(directory)
    for name in PASSWORDS:
        authority.issue(name)
    broker, sasl_ssl, ssl = unstarted(), free_port(), free_port()
    addresses = {"PLAINTEXT": broker.port, "SASL_SSL": sasl_ssl, "SSL": ssl}
    broker.configure(
        {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in addresses.items()),
            "sasl.enabled.mechanisms": MECHANISM,
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": jaas(MECHANISM, "broker", "broker-secret"),
            "listener.name.ssl.ssl.client.auth": "required",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
            "kpybroker.log.client.lines.max": "0",  # tests look for lines of their own; Kafka passes over the key
            **stores(authority),
        }
    )
    broker.start()
    tools = Tools("3.9.1", broker.bootstrap)
    for user, password in PASSWORDS.items():
        set_scram(tools, user, password, (MECHANISM,))
    return Locked(broker, authority, f"127.0.0.1:{sasl_ssl}", f"127.0.0.1:{ssl}")


# --- a caller's settings, as each library calls them


def librdkafka_settings(caller: Caller) -> dict[str, str]:
    settings = {"security.protocol": "SASL_SSL" if caller.user else "SSL", "ssl.ca.location": caller.ca}
    if caller.user:
        settings |= {
            "sasl.mechanisms": MECHANISM,
            "sasl.username": caller.user,
            "sasl.password": caller.password,
        }
    if caller.certificate:
        settings |= {"ssl.certificate.location": caller.certificate, "ssl.key.location": caller.key}
    return settings


def python_settings(caller: Caller) -> dict[str, str]:
    """kafka-python's; those for TLS are files."""
    settings = {"security_protocol": "SASL_SSL" if caller.user else "SSL", "ssl_cafile": caller.ca}
    if caller.user:
        settings |= {
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": caller.user,
            "sasl_plain_password": caller.password,
        }
    if caller.certificate:
        settings |= {"ssl_certfile": caller.certificate, "ssl_keyfile": caller.key}
    return settings


def java_settings(caller: Caller, store: str = "PEM") -> dict[str, str]:
    """`store`: of a certificate, PEM or PKCS12. The authority's is PEM: PKCS12 for Java needs an attribute."""
    settings = {
        "security.protocol": "SASL_SSL" if caller.user else "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": caller.ca,
    }
    if caller.user:
        settings |= {"sasl.mechanism": MECHANISM, "sasl.jaas.config": jaas(MECHANISM, caller.user, caller.password)}
    if caller.certificate:
        suffix = {"PEM": ".pem", "PKCS12": ".p12"}[store]
        location = str(Path(caller.certificate).with_suffix(suffix))
        settings |= {"ssl.keystore.type": store, "ssl.keystore.location": location}
    if caller.certificate and store == "PKCS12":
        settings |= {"ssl.keystore.password": STORE_PASSWORD, "ssl.key.password": STORE_PASSWORD}
    return settings


def java_file(caller: Caller, directory: Path) -> str:
    """The same as a file, for Kafka's tools."""
    path = directory / "client.properties"
    lines = [f"{key}={value}".replace("\\", "\\\\") for key, value in java_settings(caller).items()]
    path.write_text("\n".join(lines) + "\n")
    return str(path)
