"""Which login modules a mechanism of a listener has, in Kafka's order of precedence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.jaas import login_modules, option
from kpybroker.config.values import ConfigTextError

KEY = "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config"
FILE = """
KafkaServer { a.Scram required password=general; a.Plain required password=plain; };
sasl_plaintext.KafkaServer { a.Scram required password=own; };
"""


def password(props: dict[str, str], listener: str = "SASL_PLAINTEXT", class_name: str = "a.Scram") -> str | None:
    modules = login_modules(BrokerConfig(props), listener, "SCRAM-SHA-256")
    return option(modules, class_name, "password")


@pytest.fixture
def file(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "jaas.conf"
    path.write_text(FILE)
    return {"kpybroker.jaas.config.file": str(path)}


def test_the_key_of_listener_and_mechanism_comes_first(file: dict[str, str]) -> None:
    assert password({**file, KEY: "a.Scram required password=key;"}) == "key"


def test_then_the_listeners_context_then_the_general_one(file: dict[str, str]) -> None:
    assert password(file) == "own"
    assert password(file, "OTHER") == "general"
    assert password(file, "OTHER", "a.Plain") == "plain"
    assert password(file, "OTHER", "a.Kerberos") is None


def test_a_key_without_listener_and_mechanism_is_not_used(file: dict[str, str]) -> None:
    assert password({**file, "sasl.jaas.config": "a.Scram required password=client;"}) == "own"


@pytest.mark.parametrize(
    ("props", "text"),
    [
        ({}, "there is no JAAS file with sasl_plaintext.KafkaServer or KafkaServer"),
        ({"kpybroker.jaas.config.file": "/no/such/file"}, "the JAAS file /no/such/file cannot be read: No such file"),
        (
            {KEY: "a.B required"},
            f"malformed JAAS configuration: {KEY}: line 1: an option of the login module or `;` expected",
        ),
        ({KEY: ""}, "contains 0 login modules, should be 1 module"),
        ({KEY: "a.B required; c.D required;"}, "contains 2 login modules, should be 1 module"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(props: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigTextError) as caught:
        password(props)
    assert text in str(caught.value)
    assert caught.value.name in (KEY, "kpybroker.jaas.config.file")


def test_a_malformed_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text("KafkaServer { a.B required password geheim; };")
    with pytest.raises(ConfigTextError, match=r"malformed JAAS file: .*jaas.conf: line 1: `=` expected") as caught:
        password({"kpybroker.jaas.config.file": str(path)})
    assert "geheim" not in str(caught.value)
