"""How clients log in where they have to: found by the address that they connect to.

A cluster that asks for logins registers its addresses; the clients of the suites and Kafka's tools ask here, so that
the same test runs on an open cluster and on a secured one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """A user of SCRAM on SASL_SSL. `file` holds the same for Kafka's tools."""

    mechanism: str
    user: str
    password: str
    ca: Path
    file: Path

    @property
    def librdkafka(self) -> Mapping[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": str(self.ca),
        }

    def write_file(self) -> None:
        self.file.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism={self.mechanism}\n"
            f'sasl.jaas.config={MODULE} required username="{self.user}" password="{self.password}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        )


_logins: dict[str, ClientLogin] = {}


def register(address: str, login: ClientLogin) -> None:
    """Clients of `address` log in from now on."""
    _logins[address] = login


def login_at(bootstrap: str) -> ClientLogin | None:
    """Of the first address; None where none is needed."""
    return _logins.get(bootstrap.partition(",")[0])


def reach(bootstrap: str) -> dict[str, str]:
    """What librdkafka needs to connect."""
    login = login_at(bootstrap)
    return {"bootstrap.servers": bootstrap, **({} if login is None else login.librdkafka)}
