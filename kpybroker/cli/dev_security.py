"""What `kpybroker dev --sasl` and `--acl` add to a broker for development: a protocol, users, and what clients set.

The users are always the same, so that a client's settings stay valid: `dev` is for one machine and one developer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kpybroker.config.unserved import ACL_AUTHORIZER

USERS = {"alice": "alice-secret", "admin": "admin-secret"}
"""The brokers log in as admin."""

MECHANISMS = {"plain": "PLAIN", "scram": "SCRAM-SHA-256"}
"""What `--sasl` takes -> the mechanism."""

DEFAULT_SASL = "scram"
"""With `--acl` alone: who has no name cannot be allowed anything."""

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Security(NamedTuple):
    """`keys` of each broker; `show` makes the lines of the banner for an address, in place of those that try it."""

    protocol: str = "PLAINTEXT"
    keys: Mapping[str, str] = {}
    show: Callable[[str], Sequence[str]] | None = None


def security_of(sasl: str | None) -> Security:
    """Of the value of `--sasl`; None: no security."""
    if sasl is None:
        return Security()
    mechanism, protocol = MECHANISMS[sasl], "SASL_PLAINTEXT"
    keys = {
        "security.inter.broker.protocol": protocol,
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config": _server_jaas(mechanism),
    }
    if mechanism != "PLAIN":
        keys["kpybroker.scram.initial.users"] = ",".join(
            f"{mechanism}=[name={name},password={password}]" for name, password in USERS.items()
        )
    return Security(protocol, keys, lambda at: _client_lines(at, protocol, mechanism))


def _server_jaas(mechanism: str) -> str:
    users = "".join(f' user_{name}="{password}"' for name, password in USERS.items())
    login = f'{_MODULES[mechanism]} required username="admin" password="{USERS["admin"]}"'
    return f"{login}{users if mechanism == 'PLAIN' else ''};"


def _client_lines(at: str, protocol: str, mechanism: str) -> list[str]:
    password = USERS["alice"]
    return [
        f"  users    {', '.join(f'{name} ({word})' for name, word in USERS.items())}",
        "  clients",
        f"    kcat     kcat -L -b {at} -X security.protocol={protocol} -X sasl.mechanisms={mechanism} "
        f"-X sasl.username=alice -X sasl.password={password}",
        f"    Python   Producer({{'bootstrap.servers': '{at}', 'security.protocol': '{protocol}', "
        f"'sasl.mechanisms': '{mechanism}', 'sasl.username': 'alice', 'sasl.password': '{password}'}})",
        "    Java     a properties file:",
        f"      bootstrap.servers={at}",
        f"      security.protocol={protocol}",
        f"      sasl.mechanism={mechanism}",
        f'      sasl.jaas.config={_MODULES[mechanism]} required username="alice" password="{password}";',
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
    mechanism = security.keys["sasl.enabled.mechanisms"]
    return [
        "  acls     alice may do nothing yet; admin may do everything, such as",
        "    kpybroker acl create --allow-principal alice --topic '*' --group '*' --producer --consumer "
        f"-b {at} -X security.protocol={security.protocol} -X sasl.mechanisms={mechanism} "
        f"-X sasl.username=admin -X sasl.password={USERS['admin']}",
    ]
