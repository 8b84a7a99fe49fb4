"""What `kpybroker dev --sasl`, `--tls` and `--acl` add for development: a protocol, users, and what clients set.

The users are always the same, so that a client's settings stay valid: `dev` is for one machine and one developer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.config.unserved import ACL_AUTHORIZER

if TYPE_CHECKING:
    from kpybroker.cli.dev_certificates import TlsFiles

USERS = {"alice": "alice-secret", "admin": "admin-secret"}
"""The brokers log in as admin."""

OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = {"plain": "PLAIN", "scram": "SCRAM-SHA-256", "oauthbearer": OAUTHBEARER}
"""What `--sasl` takes -> the mechanism. Tokens are unsecured ones, of any user; brokers then log in by PLAIN."""

DEFAULT_SASL = "scram"
"""With `--acl` alone: who has no name cannot be allowed anything."""

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}


class Security(NamedTuple):
    """`keys` of each broker; `show` makes the lines of the banner for an address, in place of those that try it."""

    protocol: str = "PLAINTEXT"
    keys: Mapping[str, str] = {}
    show: Callable[[str], Sequence[str]] | None = None


def protocol_of(sasl: str | None, tls: bool) -> str:
    """The security protocol of the listener."""
    return ("SSL" if tls else "PLAINTEXT") if sasl is None else "SASL_SSL" if tls else "SASL_PLAINTEXT"


def security_of(sasl: str | None, tls: TlsFiles | None = None) -> Security:
    """Of the value of `--sasl`, and the certificates of `--tls`; None: without."""
    protocol = protocol_of(sasl, tls is not None)
    if protocol == "PLAINTEXT":
        return Security()
    keys = {"security.inter.broker.protocol": protocol}
    if tls is not None:
        keys |= _tls_keys(tls)
    if sasl is not None:
        keys |= _sasl_keys(MECHANISMS[sasl], protocol)
    return Security(protocol, keys, lambda at: _client_lines(at, protocol, sasl and MECHANISMS[sasl], tls))


def _tls_keys(files: TlsFiles) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.broker,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": files.authority,
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }


def _sasl_keys(mechanism: str, protocol: str) -> dict[str, str]:
    if mechanism == OAUTHBEARER:
        jaas = f'{_MODULES[mechanism]} required unsecuredValidatorPrincipalClaimName="sub";'
        return _sasl_keys("PLAIN", protocol) | {
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
    login = f'{_MODULES[mechanism]} required username="admin" password="{USERS["admin"]}"'
    return f"{login}{users if mechanism == 'PLAIN' else ''};"


def _client_lines(at: str, protocol: str, mechanism: str | None, tls: TlsFiles | None) -> list[str]:
    librdkafka = {"security.protocol": protocol}
    java = dict(librdkafka)
    lines = []
    if tls is not None:
        lines.append(f"  trust    {tls.authority}")
        lines.append(f"  client   {tls.client} (a certificate, for those that want one)")
        librdkafka["ssl.ca.location"] = tls.authority
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls.authority}
        if mechanism is None:
            librdkafka |= {"ssl.certificate.location": tls.client, "ssl.key.location": tls.client}
            java |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": tls.client}
    if mechanism is not None:
        password = USERS["alice"]
        lines.append(f"  users    {', '.join(f'{name} ({word})' for name, word in USERS.items())}")
        login = f'username="alice" password="{password}"'
        own = {"sasl.username": "alice", "sasl.password": password}
        if mechanism == OAUTHBEARER:
            login = 'unsecuredLoginStringClaim_sub="alice"'
            own = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"}
        librdkafka |= {"sasl.mechanisms": mechanism, **own}
        java["sasl.mechanism"] = mechanism
        java["sasl.jaas.config"] = f"{_MODULES[mechanism]} required {login};"
    python = {"bootstrap.servers": at, **librdkafka}
    return [
        *lines,
        "  clients",
        f"    kcat     kcat -L -b {at} {' '.join(f'-X {key}={value}' for key, value in librdkafka.items())}",
        f"    Python   Producer({python!r})",
        "    Java     a properties file:",
        *(f"      {key}={value}" for key, value in {"bootstrap.servers": at, **java}.items()),
    ]


def with_acls(security: Security) -> Security:
    """With an authorizer whose super user is admin; the banner has the command that allows alice something."""
    keys = {
        **security.keys,
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": "User:admin",
    }
    return security._replace(keys=keys, show=lambda at: [*_shown(security, at), *_acl_lines(at, security)])


def _shown(security: Security, at: str) -> Sequence[str]:
    return () if security.show is None else security.show(at)


def _acl_lines(at: str, security: Security) -> list[str]:
    client = {
        "security.protocol": security.protocol,
        "sasl.mechanisms": security.keys["sasl.enabled.mechanisms"],
        "sasl.username": "admin",
        "sasl.password": USERS["admin"],
    }
    if "ssl.truststore.location" in security.keys:
        client["ssl.ca.location"] = security.keys["ssl.truststore.location"]
    return [
        "  acls     alice may do nothing yet; admin may do everything, such as",
        "    kpybroker acl create --allow-principal alice --topic '*' --group '*' --producer --consumer "
        f"-b {at} {' '.join(f'-X {key}={value}' for key, value in client.items())}",
    ]
