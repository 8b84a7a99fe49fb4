"""Kafka 4.3.1's tools of administration at a broker in its place: what they print there, but for what is named here."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from compat_tests.tools.admin_outputs import AUTHORIZER, outputs, recorded
from kpybroker.config.keys.own import KAFKA_VERSION
from kpybroker.config.unserved import ACL_AUTHORIZER
from tests.support.programs.threaded_broker import threaded_broker

NO_QUORUM = "org.apache.kafka.common.errors.UnsupportedVersionException: The node does not support DESCRIBE_QUORUM"
OTHERWISE: Final = {
    # a key that Kafka 4 removed keeps its effect
    "configs --describe --entity-type brokers --entity-name 0": (
        "log.message.downconversion.enable=true sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:"
        "log.message.downconversion.enable=true, DEFAULT_CONFIG:log.message.downconversion.enable=true}",
    ),
    # as in ZooKeeper mode, in whose tree a name has no colon
    "configs --alter --entity-type ips --entity-name ::1 --add-config connection_creation_rate=5": (
        "exit code 1",
        "Caused by: org.apache.kafka.common.errors.InvalidRequestException: %3A%3A1 is not a valid IP or resolvable "
        "host.",
    ),
    "configs --describe --entity-type ips": (
        "exit code 0",
        "Quota configs for ip '10.0.0.1' are connection_creation_rate=5.0",
    ),
    # what is about KRaft
    "cluster unregister --id 5": ("The target cluster does not support the broker unregistration API.",),
    "metadata-quorum describe --status": ("exit code 1", NO_QUORUM),
    "metadata-quorum describe --replication": ("exit code 1", NO_QUORUM),
    f"metadata-quorum remove-controller --controller-id 5 --controller-directory-id {'A' * 22}": (
        "exit code 1",
        "org.apache.kafka.common.errors.UnsupportedVersionException: The node does not support REMOVE_RAFT_VOTER",
    ),
    "features describe": (
        "exit code 0",
        "Feature: group.version SupportedMinVersion: 0 SupportedMaxVersion: 1 FinalizedVersionLevel: 1 Epoch: NUMBER",
    ),
    # two-phase commit, which no release of Kafka serves
    "acls --add --allow-principal User:a --operation TwoPhaseCommit --transactional-id x": (
        "exit code 1",
        "Caused by: org.apache.kafka.common.errors.InvalidRequestException: Failed to create ACL",
    ),
    "acls --list --principal User:a": ("(principal=User:a, host=*, operation=READ, permissionType=ALLOW)",),
    "acls --list": ("exit code 0",),
}
"""Command -> lines that it prints here, where Kafka does something else."""

SETTLED_S: Final = 30.0
"""How long the output of a command that changes nothing may differ: a change reaches the broker a little later."""


def test_the_tools_print_what_they_print_on_kafka(tmp_path: Path) -> None:
    expected = recorded()
    until = time.monotonic() + SETTLED_S

    def again(head: str, text: str) -> bool:
        is_other = text != expected[head] and without_number(head) not in OTHERWISE
        return is_other and time.monotonic() < until

    keys = {
        name.replace(".", "_"): value
        for name, value in {**AUTHORIZER, "authorizer.class.name": ACL_AUTHORIZER, KAFKA_VERSION: "4.3"}.items()
    }
    with threaded_broker(tmp_path / "data", **keys) as bootstrap:
        found = outputs(bootstrap, tmp_path, again)
    assert found.keys() == expected.keys()
    others = {head: text for head, text in found.items() if text != expected[head]}
    assert {head: text for head, text in others.items() if without_number(head) not in OTHERWISE} == {}
    assert {without_number(head) for head in others} == OTHERWISE.keys()
    for head, text in others.items():
        assert set(OTHERWISE[without_number(head)]) <= set(text.splitlines()), text


def without_number(head: str) -> str:
    return head.partition(" ")[2]
