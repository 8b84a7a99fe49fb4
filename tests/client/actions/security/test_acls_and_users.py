"""ACLs, which this broker has no authorizer for, and the commands say so; and users."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from kpybroker.client.actions.security.acls import AclOptions, bindings, filters, operations_for, principal
from kpybroker.client.actions.security.users import read_password
from kpybroker.client.connect.errors import CommandError
from tests.client.conftest import Run


def test_each_principal_gets_each_operation_on_each_resource() -> None:
    options = AclOptions(
        allow=["alice"], deny=["Group:x"], operations=["read,alter-configs"], topics=["t"], cluster=True
    )
    found = {
        (one.principal, one.restype.name, one.name, one.operation.name, one.permission_type.name)
        for one in bindings(options)
    }
    assert len(found) == 8
    assert ("User:alice", "TOPIC", "t", "READ", "ALLOW") in found
    assert ("Group:x", "BROKER", "kafka-cluster", "ALTER_CONFIGS", "DENY") in found


def test_producers_and_consumers_get_what_they_need() -> None:
    producer, consumer = AclOptions(producer=True), AclOptions(consumer=True)
    assert operations_for("topic", producer) == ["WRITE", "DESCRIBE", "CREATE"]
    assert operations_for("transactional-id", producer) == ["WRITE", "DESCRIBE"]
    assert operations_for("topic", consumer) == ["READ", "DESCRIBE"]
    assert operations_for("group", consumer) == ["READ"]


def test_prefixes_do_not_apply_to_the_cluster() -> None:
    made = bindings(AclOptions(allow=["a"], operations=["all"], topics=["t-"], cluster=True, prefixed=True))
    assert [one.resource_pattern_type for one in made] == [ResourcePatternType.PREFIXED, ResourcePatternType.LITERAL]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (AclOptions(topics=["t"], operations=["read"]), "no principal"),
        (AclOptions(allow=["a"], operations=["read"]), "no resource"),
        (AclOptions(allow=["a"], topics=["t"]), "no operation is named for topic t"),
        (AclOptions(allow=["a"], topics=["t"], operations=["raed"]), "raed is no operation"),
        (AclOptions(allow=["a"], topics=["t"], operations=["any"]), "any is no operation"),
    ],
)
def test_an_acl_needs_all_of_its_parts(options: AclOptions, named: str) -> None:
    with pytest.raises(CommandError, match=named) as caught:
        bindings(options)
    assert caught.value.exit_code == 2


def test_a_filter_leaves_open_what_is_not_named() -> None:
    (everything,) = filters(AclOptions())
    assert everything.restype == ResourceType.ANY
    assert (everything.principal, everything.host, everything.name) == (None, None, None)
    assert everything.operation == AclOperation.ANY
    assert everything.permission_type == AclPermissionType.ANY
    assert len(filters(AclOptions(allow=["a", "b"], topics=["t", "u"]))) == 4
    assert (principal("a"), principal("Group:a")) == ("User:a", "Group:a")


def test_a_password_is_read_from_a_file_or_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("pass word-1\n")
    assert read_password(str(file)) == "pass word-1"
    file.write_text("\n")
    with pytest.raises(CommandError, match="empty"):
        read_password(str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        read_password(str(tmp_path / "none"))


@pytest.mark.parametrize(
    "words",
    [
        ("acl", "list"),
        ("acl", "create", "--allow-principal", "a", "--topic", "t", "--operation", "read"),
        ("acl", "delete", "--topic", "t"),
        ("acl", "delete", "--topic", "t", "-y"),
    ],
)
def test_a_broker_without_an_authorizer_is_a_clear_error(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words, stdin=b"alice-password\n")
    assert result.code == 1
    assert "SECURITY_DISABLED" in result.err
    assert "fix: set authorizer.class.name in the broker's server.properties" in result.err


def test_users_are_set_listed_and_deleted(run: Run) -> None:
    done = run("user", "set", "alice", stdin=b"alice-password\n")
    assert (done.code, done.text.split()[3:]) == (0, ["alice", "SCRAM-SHA-512", "set"])
    assert run("user", "list", "alice").text.split()[-3:-1] == ["alice", "SCRAM-SHA-512"]
    assert run("user", "delete", "alice", "-y").code == 0
    gone = run("user", "list", "alice")
    assert gone.code == 1
    assert "Attempt to describe a user credential that does not exist" in gone.err
    assert "alice-password" not in done.err + done.text


def test_deleting_everything_is_refused(run: Run) -> None:
    result = run("acl", "delete", "-y")
    assert (result.code, "every ACL" in result.err) == (2, True)
