"""What brokers for development have where they ask for TLS, logins or ACLs: a protocol, users and certificates.

The users are always the same, so that a client's settings stay valid: such brokers are for one machine and one
developer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.config.unserved import ACL_AUTHORIZER

if TYPE_CHECKING:
    from kpybroker.control.development.certificates import TlsFiles

USERS: Final = {"alice": "alice-secret", "bob": "bob-secret", "admin": "admin-secret"}
"""Name -> password. The brokers log in as admin."""

ADMIN: Final = "admin"

OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = {"plain": "PLAIN", "scram": "SCRAM-SHA-256", "oauthbearer": OAUTHBEARER}
"""What is asked for -> the mechanism. Tokens are unsecured ones, of any user; brokers then log in by PLAIN."""

DEFAULT_SASL: Final = "scram"
"""With ACLs alone: who has no name cannot be allowed anything."""

MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
"""Mechanism -> its login module, as Kafka and Java clients name it."""


class SecurityOptions(NamedTuple):
    """What is asked for. `sasl`: a key of `MECHANISMS`."""

    tls: bool = False
    sasl: str | None = None
    acl: bool = False

    def complete(self) -> SecurityOptions:
        """With the logins that ACLs need."""
        return self._replace(sasl=DEFAULT_SASL) if self.acl and self.sasl is None else self

    @property
    def mechanism(self) -> str | None:
        """The name of the mechanism."""
        return None if self.sasl is None else MECHANISMS[self.sasl]

    @property
    def protocol(self) -> str:
        """The security protocol of the listener."""
        if self.sasl is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"


class NoCertificates(Exception):
    """The certificates cannot be made: the cause, and what to do. `is_missing`: a package is."""

    def __init__(self, cause: str, fix: str, *, is_missing: bool) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix
        self.is_missing = is_missing


def tls_directory(data_dir: str, temporary: str | None) -> Path:
    """Where the certificates are: next to the data, since they live as long. `temporary`: where everything goes."""
    return Path(temporary) / "tls" if temporary is not None else Path(f"{data_dir}-tls")


def tls_files(directory: Path, host: str) -> TlsFiles:
    """The files in the directory, made if need be, for a broker that listens at `host`. Raises NoCertificates."""
    try:
        from kpybroker.control.development.certificates import certificates

        return certificates(directory, host)
    except ModuleNotFoundError:
        raise NoCertificates(
            "TLS needs the package cryptography", "pip install 'kpybroker[security]'", is_missing=True
        ) from None
    except OSError as error:
        raise NoCertificates(
            f"the directory of the certificates of TLS, {directory}, cannot be used: {error.strerror or error}",
            "remove it or make it yours alone (chown, chmod -R go-w), or choose another data directory",
            is_missing=False,
        ) from error


def broker_keys(wanted: SecurityOptions, tls: TlsFiles | None = None) -> dict[str, str]:
    """The keys of each broker; `tls` has the files where TLS is wanted. They go below what a user sets."""
    keys: dict[str, str] = {}
    if wanted.protocol != "PLAINTEXT":
        keys["security.inter.broker.protocol"] = wanted.protocol
    if tls is not None:
        keys |= _tls_keys(tls)
    if wanted.mechanism is not None:
        keys |= _sasl_keys(wanted.mechanism, wanted.protocol)
    if wanted.acl:
        keys |= {"authorizer.class.name": ACL_AUTHORIZER, "super.users": f"User:{ADMIN}"}
    return keys


def _tls_keys(files: TlsFiles) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.broker,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.authority,
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }


def _sasl_keys(mechanism: str, protocol: str) -> Mapping[str, str]:
    if mechanism == OAUTHBEARER:
        jaas = f'{MODULES[mechanism]} required unsecuredValidatorPrincipalClaimName="sub";'
        return {
            **_sasl_keys("PLAIN", protocol),
            "sasl.enabled.mechanisms": f"{mechanism},PLAIN",
            f"listener.name.{protocol.lower()}.oauthbearer.sasl.jaas.config": jaas,
        }
    keys = {
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config": _server_jaas(mechanism),
    }
    if mechanism != "PLAIN":
        keys["kpybroker.scram.initial.users"] = ",".join(
            f"{mechanism}=[name={name},password={password}]" for name, password in USERS.items()
        )
    return keys


def _server_jaas(mechanism: str) -> str:
    users = "".join(f' user_{name}="{password}"' for name, password in USERS.items())
    login = f'{MODULES[mechanism]} required username="{ADMIN}" password="{USERS[ADMIN]}"'
    return f"{login}{users if mechanism == 'PLAIN' else ''};"
