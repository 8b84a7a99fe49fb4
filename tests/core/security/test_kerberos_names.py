"""Kerberos principals and rules, with the cases of Kafka's ``KerberosRuleTest`` in mind."""

from __future__ import annotations

import pytest

from kpybroker.core.security.kerberos_names import KerberosName, NoMatchingRule, parse_name, parse_rules


def user(principal: str, *rules: str) -> str:
    return parse_rules(rules, "REALM").user(parse_name(principal))


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("alice@REALM", KerberosName("alice", None, "REALM")),
        ("kafka/host.example@REALM", KerberosName("kafka", "host.example", "REALM")),
        ("alice", KerberosName("alice", None, None)),
        ("alice@", KerberosName("alice", None, "")),
    ],
)
def test_names(principal: str, name: KerberosName) -> None:
    assert parse_name(principal) == name
    assert str(name) == principal


@pytest.mark.parametrize("principal", ["a/b/c@REALM", "a@b@c"])
def test_malformed_names(principal: str) -> None:
    with pytest.raises(ValueError, match="Malformed Kerberos name"):
        parse_name(principal)


@pytest.mark.parametrize(
    ("principal", "rules", "expected"),
    [
        ("alice@REALM", (), "alice"),
        ("kafka/host@REALM", ("DEFAULT",), "kafka"),
        ("alice", ("RULE:[1:x$1]",), "alice"),
        ("alice@OTHER", ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"), "alice"),
        ("alice@REALM", ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"), "alice"),
        ("kafka/host@OTHER", ("RULE:[2:$1.$2]",), "kafka.host"),
        ("App.Service@OTHER", ("RULE:[1:$1]/L",), "app.service"),
        ("alice@OTHER", ("RULE:[1:$1](.*)s/a/A/g/U",), "ALICE"),
        ("banana@OTHER", ("RULE:[1:$1]s/a/o/",), "bonana"),
        ("banana@OTHER", ("RULE:[1:$1]s/a/o/g",), "bonono"),
        ("alice-team@OTHER", ("RULE:[1:$1](.*-team)s/(.*)-(.*)/$2.$1/",), "team.alice"),
        ("a@OTHER", (r"RULE:[1:$1]s/a/\$1/",), "$1"),
        ("a@OTHER", ("RULE:[1:$1]s/a//",), ""),
    ],
)
def test_rules(principal: str, rules: tuple[str, ...], expected: str) -> None:
    assert user(principal, *rules) == expected


@pytest.mark.parametrize(
    ("principal", "rules"),
    [
        ("alice@OTHER", ()),
        ("alice@OTHER", ("RULE:[2:$1]",)),
        ("alice@OTHER", ("RULE:[1:$1@$0]",)),
        ("kafka/host@OTHER", ("RULE:[2:$1/$2]",)),
        ("alicex@OTHER", ("RULE:[1:$1](alice)",)),
    ],
)
def test_principals_that_are_no_user(principal: str, rules: tuple[str, ...]) -> None:
    with pytest.raises(NoMatchingRule):
        user(principal, *rules)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "default",
        "RULE:[1:$1",
        "RULE:[1:$2]",
        "RULE:[1:$]",
        "RULE:[:$1]",
        "RULE:[1:$1](",
        "RULE:[1:$1](*)",
        "RULE:[1:$1]s/(a//",
        "RULE:[1:$1]s/a/$1/",
        "RULE:[1:$1]s/a/b/x",
        "RULE:[1:$1]/X",
        "RULE:[1:$1]L extra",
    ],
)
def test_malformed_rules(rule: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        parse_rules([rule], "REALM")
