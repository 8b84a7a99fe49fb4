"""PLAIN: the token, the check, and Kafka's texts."""

from __future__ import annotations

import pytest

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed
from kpybroker.core.security.sasl.plain import PlainMechanism, of_users
from kpybroker.core.security.secret import Secret

PLAIN = PlainMechanism(of_users({"alice": Secret("secret"), "bob": Secret("a\N{SNOWMAN}b"), "": Secret("x")}))


def login(token: bytes, mechanism: PlainMechanism = PLAIN) -> LoggedIn:
    return mechanism.begin().step(token, 0)


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret", b"\0bob\0a\xe2\x98\x83b"])
def test_a_valid_login(token: bytes) -> None:
    name = token.split(b"\0")[1].decode()
    assert login(token) == LoggedIn(Principal("User", name))


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b"\0alice\0Secret", "Authentication failed: Invalid username or password"),
        (b"\0carol\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0\xff", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_a_refusal_has_kafkas_text_and_no_password(token: bytes, reason: str) -> None:
    with pytest.raises(LoginFailed) as caught:
        login(token)
    assert caught.value.reason == reason
    assert "secret" not in caught.value.log_reason.lower()


def test_a_check_that_raises_could_not_verify_and_leaves_no_trace_of_the_password() -> None:
    def check(username: str, password: str) -> bool:
        raise OSError(f"directory unreachable with {password}")

    with pytest.raises(LoginFailed) as caught:
        login(b"\0alice\0secret", PlainMechanism(check, blocks=True))
    assert caught.value.reason == "Authentication failed: credentials for user could not be verified"
    assert caught.value.log_reason.endswith("(OSError)")
    assert caught.value.__suppress_context__


def test_only_true_lets_a_user_in() -> None:
    for result in ("yes", 1, None):
        with pytest.raises(LoginFailed):
            login(b"\0alice\0secret", PlainMechanism(lambda username, password, r=result: r))  # type: ignore[misc]
