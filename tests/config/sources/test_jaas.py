"""JAAS login files: the grammar, and the errors for files that do not follow it."""

from __future__ import annotations

import pytest

from kpybroker.config.sources.jaas import JaasError, LoginModule, parse_jaas, parse_login_modules

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
def test_the_error_for_an_unreadable_file_names_it(text: str) -> None:
    with pytest.raises(JaasError, match=r"^/etc/jaas\.conf: "):
        parse_jaas("/etc/jaas.conf", text)


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(JaasError):
        parse_jaas("f", "Client { a.B required k=v")


def test_a_value_holds_modules_without_a_context() -> None:
    (module,) = parse_login_modules("key", "a.B required user_alice='x;y' p=q;")
    assert module == LoginModule("a.B", "required", {"user_alice": "x;y", "p": "q"})
    assert parse_login_modules("key", "") == []


@pytest.mark.parametrize(
    "text",
    [
        'a.B required password "geheim";',
        'a.B required\n password="geheim"',
        'a.B required password=geheim" ;',
        "a.B required password=geheim= ;",
        'a.B "geheim" x=y;',
        "a.B required password=;",
    ],
)
def test_an_error_names_the_line_and_no_value(text: str) -> None:
    with pytest.raises(JaasError, match=r"^key: line [12]") as caught:
        parse_login_modules("key", text)
    assert "geheim" not in str(caught.value)


def test_no_repr_shows_a_value() -> None:
    (module,) = parse_login_modules("key", "a.B required password=geheim;")
    assert repr(module) == "LoginModule(a.B required with password)"
