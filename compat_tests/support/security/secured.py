"""A broker with a SASL_SSL listener next to its plain one, ours or Kafka's, and the settings of a client for it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.support.network.certificates import PASSWORD, Authority

_PACKAGE: Final = "org.apache.kafka.common.security"
MECHANISMS: Final = "PLAIN,SCRAM-SHA-256"


class Login(NamedTuple):
    """A user of PLAIN."""

    user: str
    password: str


LOGIN: Final = Login("alice", "alice-secret")


def secured_keys(plain_port: int, port: int, authority: Authority) -> dict[str, str]:
    """The broker's keys. Users of SCRAM are added to the tree; none is there at first."""
    _, store = authority.issue("secured")
    prefix = "listener.name.sasl_ssl"
    plain = f'{_PACKAGE}.plain.PlainLoginModule required user_{LOGIN.user}="{LOGIN.password}";'
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain_port},SASL_SSL://127.0.0.1:{port}",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "sasl.enabled.mechanisms": MECHANISMS,
        f"{prefix}.plain.sasl.jaas.config": plain,
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_PACKAGE}.scram.ScramLoginModule required;",
    }


def librdkafka_login(address: str, authority: Authority) -> dict[str, Any]:
    """The settings of a client that is logged in over TLS."""
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority.certificate),
        "sasl.mechanisms": "PLAIN",
        "sasl.username": LOGIN.user,
        "sasl.password": LOGIN.password,
    }
