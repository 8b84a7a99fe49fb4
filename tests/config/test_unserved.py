"""Security that is asked for and not served ends the start; it is never left out in silence."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.dynamic import usable_dynamic, validate_dynamic
from kpybroker.config.fix import fix_for
from kpybroker.config.interpret import interpret
from kpybroker.config.keys import security
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.status import HONOURED, NO_JVM_PLUGIN, OPENSSL, SECURITY
from kpybroker.config.unserved import ACL_AUTHORIZER, NotServed
from kpybroker.config.values import ConfigError


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("super.users", "User:admin", "every client may do everything"),
        ("allow.everyone.if.no.acl.found", "FALSE", "every client may do everything"),
    ],
)
def test_a_demand_is_refused_with_what_is_the_case_instead(name: str, value: str, instead: str) -> None:
    with pytest.raises(NotServed) as caught:
        BrokerConfig({name: value})
    assert str(caught.value).startswith(f"not served yet: {name}={value} (")
    assert instead in str(caught.value)
    assert fix_for(caught.value).startswith(f"remove {name}, but only where every client")


def test_one_error_names_everything_that_is_refused() -> None:
    with pytest.raises(NotServed) as caught:
        BrokerConfig({"super.users": "User:a", "authorizer.class.name": "a.B"})
    assert caught.value.names == ["super.users", "authorizer.class.name"]
    assert fix_for(caught.value).startswith("remove super.users, authorizer.class.name, but only where")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", ""),
        ("super.users", " "),
        ("allow.everyone.if.no.acl.found", "true"),
        ("sasl.enabled.mechanisms", ""),
        ("ssl.client.auth", "none"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("ssl.keystore.location", "/store"),
        ("sasl.jaas.config", "x required;"),
    ],
)
def test_what_demands_nothing_is_not_refused(name: str, value: str) -> None:
    BrokerConfig({name: value})


def test_a_key_that_only_says_how_is_a_warning_without_its_value() -> None:
    props = {"ssl.keystore.location": "/s", "ssl.keystore.password": "geheim", "sasl.login.class": "a.B"}
    notes = interpret(props).notes
    assert [note.text for note in notes] == [
        "ssl.keystore.location, ssl.keystore.password have no effect: no listener is SSL or SASL_SSL, nothing is "
        "encrypted",
        "sasl.login.class has no effect: it is for a Java plug-in of logins, or for the way in which Java gets "
        "tickets and tokens of its own",
    ]
    assert all(note.serious for note in notes)


def test_every_key_of_tls_and_sasl_is_refused_or_a_warning() -> None:
    for name, *_, status in security.ROWS:
        if name.startswith(("ssl.", "sasl.", "delegation.")):
            assert status in SECURITY | {HONOURED, OPENSSL, NO_JVM_PLUGIN}


def test_mechanisms_without_a_listener_that_uses_them_are_a_warning() -> None:
    props = {"sasl.enabled.mechanisms": "PLAIN", "listeners": "PLAINTEXT://:9092"}
    (note,) = interpret(props).notes
    assert note.serious
    assert note.text.endswith("no client has to log in")
    assert not interpret(props | {"listeners": "SASL_PLAINTEXT://:9092"}).notes
    assert not interpret(props | {"listeners": "A://:1", "listener.security.protocol.map": "A:SASL_PLAINTEXT"}).notes


@pytest.mark.parametrize("name", ["sasl.jaas.config", "sasl.server.callback.handler.class"])
def test_a_key_of_one_mechanism_has_no_effect_without_its_prefix(name: str) -> None:
    (note,) = interpret({name: "secret"}).notes
    assert note.serious
    assert note.text == f"{name} has no effect on a broker: set listener.name.<listener>.<mechanism>.{name}"
    assert not interpret({f"listener.name.sasl.plain.{name}": "secret"}).notes


@pytest.mark.parametrize("name", ["create.topic.policy.class.name", "alter.config.policy.class.name"])
def test_a_policy_that_cannot_forbid_anything_is_a_warning(name: str) -> None:
    (note,) = interpret({name: "a.B"}).notes
    assert note.serious


def test_a_key_of_authorizers_is_not_said_to_be_unknown() -> None:
    keys = {"allow.everyone.if.no.acl.found": "true"}
    (note,) = interpret(keys).notes
    assert "it is a key of the authorizer, and authorizer.class.name is not set" in note.text
    assert not interpret({**keys, "authorizer.class.name": ACL_AUTHORIZER}).notes


@pytest.mark.parametrize("name", ["org.example.Mine", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"])
def test_another_authorizer_is_refused_with_the_name_of_ours(name: str) -> None:
    with pytest.raises(NotServed, match=rf"only {ACL_AUTHORIZER} is available") as caught:
        BrokerConfig({"authorizer.class.name": name})
    assert fix_for(caught.value).startswith(f"set authorizer.class.name={ACL_AUTHORIZER}, ")


def test_acls_elsewhere_are_refused() -> None:
    with pytest.raises(NotServed) as caught:
        BrokerConfig({"authorizer.class.name": ACL_AUTHORIZER, "authorizer.zookeeper.url": "zk:2181"})
    assert fix_for(caught.value).startswith("remove authorizer.zookeeper.url, ")


def test_keys_of_the_authorizer_are_served_with_it() -> None:
    BrokerConfig(
        {"authorizer.class.name": ACL_AUTHORIZER, "super.users": "User:a", "allow.everyone.if.no.acl.found": "false"}
    )


def test_a_dynamic_demand_is_refused_and_one_in_the_tree_is_ignored_with_its_reason() -> None:
    config = BrokerConfig()
    with pytest.raises(ConfigError, match="every client may do everything"):
        validate_dynamic(config, {"super.users": "User:a"}, per_broker=True)
    usable, ignored = usable_dynamic({"super.users": "User:a", "num.io.threads": "9"}, BROKER_KEYS, per_broker=True)
    assert usable == {"num.io.threads": "9"}
    assert ignored == {"super.users": "it demands security that is not served yet"}
