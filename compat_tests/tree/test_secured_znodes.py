"""What locks doors is kept as Kafka keeps it, on a ZooKeeper that asks for credentials (`zookeeper.set.acl`): ACLs,
SCRAM users, quotas, delegation tokens and settings of brokers with a password. Every path, byte, version and ACL.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient

from compat_tests.security.logins.token_clients import create, describe, expire, logged_in
from compat_tests.support import quick
from compat_tests.support.services import AS_KAFKA_3_9, Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from compat_tests.tree.scenario import Znode, differences, dump
from compat_tests.tree.test_znodes import Ensemble, with_digest
from kpybroker.wire.errors import ErrorCode
from tests.support.network.ports import free_port

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PROPERTIES = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-secret";',
    "delegation.token.secret.key": "the key of the cluster",
    "delegation.token.expiry.check.interval.ms": "500",
    "password.encoder.secret": "the secret of the encoder",
}
SECURED = ("/kafka-acl", "/config/users", "/config/ips", "/config/clients", "/config/brokers", "/delegation_token")
"""What this is about; `test_znodes` compares the rest, too."""
_CHANCE = re.compile(
    rb"(salt=|stored_key=|server_key=|encryptedPassword:|initializationVector:|:salt:|salt:)[^,\"]+|"
    rb'("(?:issueTimestamp|maxTimestamp|expiryTimestamp)":)"?\d+'
)


def lock(broker: Broker, sasl_port: int, tree: KazooClient) -> list[str]:
    """Everything that is kept for security, through the broker; returns the ids of the tokens, in their order."""
    _acls(broker.bootstrap)
    _users(broker.bootstrap)
    tools = Tools("3.9.1", broker.bootstrap)
    for entity, config in (
        (("users", "--entity-name", "al/ice, ü"), "producer_byte_rate=1000"),
        (("users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "c"), "request_percentage=5"),
        (("users", "--entity-default"), "consumer_byte_rate=1000"),
        (("clients", "--entity-name", "c"), "controller_mutation_rate=5"),
        (("clients", "--entity-default"), "request_percentage=50"),
        (("ips", "--entity-name", "127.0.0.9"), "connection_creation_rate=5"),
        (("brokers", "--entity-name", "0"), "listener.name.other.ssl.keystore.password=secret"),
    ):
        tools.run("configs", "--alter", "--entity-type", *entity, "--add-config", config)
    gone = ("configs", "--alter", "--entity-type", "clients", "--entity-name", "c")
    tools.run(*gone, "--delete-config", "controller_mutation_rate")
    with logged_in(("127.0.0.1", sasl_port), "alice") as alice:
        kept, short = create(alice, [("User", "bob")]), create(alice)
        # a token is known once the broker has heard of its own change
        eventually(lambda: len(describe(alice).tokens) == 2, "both tokens")
        assert expire(alice, bytes(short.hmac)).error_code == ErrorCode.NONE
    path = f"/delegation_token/tokens/{short.token_id}"
    eventually(lambda: tree.exists(path) is None, "the expired token is gone")
    return [kept.token_id, short.token_id]


def _acls(bootstrap: str) -> None:
    admin = quick.admin_client(bootstrap)
    binding = [
        AclBinding(kind, name, pattern, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
        for kind, name, pattern in (
            (ResourceType.TOPIC, "literal", ResourcePatternType.LITERAL),
            (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL),
            (ResourceType.GROUP, "pre", ResourcePatternType.PREFIXED),
            (ResourceType.TOPIC, "gone", ResourcePatternType.LITERAL),
        )
    ]
    for one in binding:  # one at a time: the order of the changes is theirs
        admin.create_acls([one])[one].result(quick.DEADLINE_S)
    from confluent_kafka.admin import AclBindingFilter

    any_of_it = AclBindingFilter(
        ResourceType.TOPIC, "gone", ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert len(admin.delete_acls([any_of_it])[any_of_it].result(quick.DEADLINE_S)) == 1


def _users(bootstrap: str) -> None:
    admin = quick.admin_client(bootstrap)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    for change in (
        UserScramCredentialUpsertion("bob", info, b"bob-secret"),
        UserScramCredentialUpsertion("carol", info, b"carol-secret"),
        UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256),
    ):
        admin.alter_user_scram_credentials([change])[change.user].result(quick.DEADLINE_S)


def tree_of(kind: str, directory: Path, ensemble: Ensemble) -> dict[str, Znode]:
    chroot = f"{ensemble.address}/{directory.name}"
    keys = PROPERTIES | ensemble.overrides | ({} if kind == "kafka" else AS_KAFKA_3_9)
    broker = Broker(kind, directory, chroot, keys, ensemble.options)
    sasl_port = free_port()
    broker.configure({"listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"})
    tree = KazooClient(chroot, **ensemble.login)
    broker.start()
    try:
        tree.start(quick.DEADLINE_S)
        tokens = lock(broker, sasl_port, tree)
        found = dump(lambda: KazooClient(chroot, **ensemble.login))
    finally:
        tree.stop()
        tree.close()
        broker.service.kill()
    for number, token_id in enumerate(tokens):
        found = {
            path.replace(token_id, f"TOKEN-{number}"): of_token(znode, token_id, number)
            for path, znode in found.items()
        }
    return {path: without_chance(znode) for path, znode in found.items()}


def of_token(znode: Znode, token_id: str, number: int) -> Znode:
    """With a number for the id."""
    data = znode.data and znode.data.replace(token_id.encode(), f"TOKEN-{number}".encode())
    return znode._replace(data=data)


def without_chance(znode: Znode) -> Znode:
    """Without what is random or a time."""
    data = znode.data and _CHANCE.sub(lambda match: next(filter(None, match.groups())) + b"*", znode.data)
    return znode._replace(data=data)


@pytest.mark.wide
def test_what_locks_doors_is_kept_as_kafka_keeps_it(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    kind = request.config.getoption("--broker")
    with with_digest(tmp_path) as ensemble:
        reference = tree_of("kafka", tmp_path / "reference", ensemble)
        compared = tree_of(kind, tmp_path / "compared", ensemble)
    for root in SECURED:
        assert len([path for path in reference if path.startswith(root)]) > 1, root
    acls = {root: {znode.acl for path, znode in reference.items() if path.startswith(root)} for root in SECURED}
    assert acls["/kafka-acl"] != acls["/config/users"]
    found = differences(reference, compared)
    assert not found, "\n".join(found)
