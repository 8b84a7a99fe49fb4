"""JAAS login files: the grammar, and what is none."""

from __future__ import annotations

import pytest

from kpybroker.config.jaas import JaasError, LoginModule, parse_jaas

FILE = """
// for ZooKeeper
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="kafka" /* not the
    admin */ password="a \\"b\\"; } \\\\c=";
};
KafkaServer { a.B optional; c.D REQUIRED key='v w' other=true; };
"""


def test_contexts_modules_and_options() -> None:
    digest = "org.apache.zookeeper.server.auth.DigestLoginModule"
    assert parse_jaas("f", FILE) == {
        "Client": [LoginModule(digest, "required", {"username": "kafka", "password": 'a "b"; } \\c='})],
        "KafkaServer": [
            LoginModule("a.B", "optional", {}),
            LoginModule("c.D", "required", {"key": "v w", "other": "true"}),
        ],
    }
    assert parse_jaas("f", " \n") == {}


@pytest.mark.parametrize(
    "text",
    ["Client", "Client {", "Client { a.B required; }", "Client { a.B never; };", 'Client { a.B required k="v; };'],
)
def test_what_cannot_be_read_names_the_file(text: str) -> None:
    with pytest.raises(JaasError, match=r"^/etc/jaas\.conf: "):
        parse_jaas("/etc/jaas.conf", text)


def test_no_end_is_no_endless_loop() -> None:
    with pytest.raises(JaasError):
        parse_jaas("f", "Client { a.B required k=v")
