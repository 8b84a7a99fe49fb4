"""Makes any cluster of the suites a secured one: brokers talk SASL_SSL with SCRAM to each other, clients do too, and
ACLs say who may do what. None of the users is a super user: brokers have ClusterAction, clients everything else.

Each broker keeps a plain listener for clients that a test writes byte by byte (`broker.port`). Their principal,
`User:ANONYMOUS`, has the ACLs of a client.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from pathlib import Path

from kazoo.client import KazooClient

from compat_tests.support.cluster import Prepare, leave_open
from compat_tests.support.security.logins import MODULE, ClientLogin, register
from compat_tests.support.services import START_DEADLINE_S, Broker
from kpybroker.core.authorizer import CLUSTER_NAME
from kpybroker.core.security.scram import BY_NAME, MIN_ITERATIONS, format_credential, make_credential
from kpybroker.wire import znodes
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.ports import free_port

MECHANISM = "SCRAM-SHA-512"
BROKER, CLIENT, NAMELESS = "broker", "tester", "ANONYMOUS"
PASSWORDS = {BROKER: "broker-secret", CLIENT: "tester-secret"}
OF_CLIENTS = ("Alter", "AlterConfigs", "Create", "Describe", "DescribeConfigs", "IdempotentWrite")
"""Operations on the cluster: all but ClusterAction."""
_numbers = itertools.count()


class Secured:
    """One authority and its users, for any number of clusters."""

    def __init__(self, directory: Path) -> None:
        self._authority = Authority(directory)
        ca = self._authority.certificate
        self.login = ClientLogin(MECHANISM, CLIENT, PASSWORDS[CLIENT], ca, directory / "client.properties")
        self.login.write_file()

    def prepare(self, broker: Broker) -> None:
        """Configure it, and let clients log in at its bootstrap address."""
        _, store = self._authority.issue(f"broker-{next(_numbers)}")
        broker.client_port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{broker.port},SASL_SSL://{broker.bootstrap}"
        module = f'{MODULE} required username="{BROKER}" password="{PASSWORDS[BROKER]}";'
        broker.configure(
            {
                "listeners": listeners,
                "security.inter.broker.protocol": "SASL_SSL",
                "sasl.enabled.mechanisms": MECHANISM,
                "sasl.mechanism.inter.broker.protocol": MECHANISM,
                f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": module,
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": str(store),
                "ssl.keystore.password": PASSWORD,
                "ssl.key.password": PASSWORD,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self._authority.certificate),
                "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                "allow.everyone.if.no.acl.found": "false",
            }
        )
        register(broker.bootstrap, self.login)


def prepare_with(secured: Secured | None, zookeeper: str) -> Prepare:
    """For `Cluster`; with the users and ACLs in the tree, before a broker has started. None: an open cluster."""
    if secured is None:
        return leave_open
    address, _, chroot = zookeeper.partition("/")
    client = KazooClient(address)
    client.start(timeout=START_DEADLINE_S)
    try:
        for path, data in _nodes():
            client.create(f"/{chroot}{path}", data, makepath=True)
    finally:
        client.stop()
        client.close()
    return secured.prepare


def _nodes() -> Iterator[tuple[str, bytes]]:
    """(path, data) of users and ACLs."""
    for user, password in PASSWORDS.items():
        credential = make_credential(BY_NAME[MECHANISM], password, secrets.token_bytes(16), MIN_ITERATIONS)
        data = znodes.encode_config({MECHANISM: format_credential(credential)})
        yield znodes.config_path(znodes.CONFIG_USERS, user), data
    clients = [(user, "All") for user in (CLIENT, NAMELESS)]
    # a follower asks its leader for the offsets of a topic, and that is no ClusterAction
    yield _acls("Topic", "*", [*clients, (BROKER, "Describe")])
    yield _acls("Group", "*", clients)
    yield _acls("TransactionalId", "*", clients)
    on_cluster = [(user, operation) for user, _ in clients for operation in OF_CLIENTS]
    yield _acls("Cluster", CLUSTER_NAME, [*on_cluster, (BROKER, "ClusterAction")])


def _acls(kind: str, name: str, allowed: list[tuple[str, str]]) -> tuple[str, bytes]:
    entries = [znodes.AclEntry(f"User:{user}", "Allow", operation, "*") for user, operation in allowed]
    return znodes.acl_path("LITERAL", kind, name), znodes.encode_acls(entries)
