"""The steps of a GSSAPI login, with a context of the test's own; `compat_tests/security` has the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kpybroker.broker.security.kerberos import (
    LAYER_CHOSEN,
    LAYERS_OFFERED,
    GssapiLogin,
    GssapiMechanism,
    Initiator,
    KerberosFailed,
    own_key,
)
from kpybroker.broker.security.login_settings import LoginConfigError
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.kerberos_names import parse_rules
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed


class Wrapped(NamedTuple):
    message: bytes


class Failure(Exception):
    """Of the library."""


class FakeContext:
    """Complete after `rounds` tokens. `has_last_token`: it has a token for the client at the end."""

    def __init__(self, rounds: int = 1, *, has_last_token: bool = True, principal: str = "alice@REALM") -> None:
        self.rounds = rounds
        self.has_last_token = has_last_token
        self.initiator_name = principal
        self.complete = False

    def step(self, token: bytes) -> bytes | None:
        if token == b"wrong":
            raise Failure("wrong key")
        self.rounds -= 1
        self.complete = self.rounds == 0
        return b"reply" if not self.complete or self.has_last_token else None

    def wrap(self, message: bytes, encrypt: bool) -> Any:
        assert not encrypt
        return Wrapped(b"wrapped" + message)

    def unwrap(self, message: bytes) -> Any:
        if not message.startswith(b"wrapped"):
            raise Failure("not wrapped")
        return Wrapped(message.removeprefix(b"wrapped"))


def begin(context: FakeContext) -> GssapiLogin:
    return GssapiMechanism(lambda: context, parse_rules([], "REALM"), Failure).begin()


CHOICE = b"wrapped\x01\0\0\0"
OFFER = b"wrapped" + LAYERS_OFFERED
ALICE = LoggedIn(Principal("User", "alice"), None)


def test_the_usual_login() -> None:
    login = begin(FakeContext())
    assert login.step(b"ticket", 0) == b"reply"
    assert login.step(b"", 0) == OFFER
    assert login.step(CHOICE + b"anyone@else", 0) == ALICE


def test_without_a_last_token_the_layers_are_offered_at_once() -> None:
    login = begin(FakeContext(has_last_token=False))
    assert login.step(b"ticket", 0) == OFFER
    assert login.step(CHOICE, 0) == ALICE


def test_several_rounds() -> None:
    login = begin(FakeContext(rounds=3))
    assert [login.step(b"token", 0) for _ in range(3)] == [b"reply"] * 3
    assert login.step(b"", 0) == OFFER
    assert login.step(CHOICE, 0) == ALICE


@pytest.mark.parametrize(
    "choice", [b"", b"wrapped", b"wrapped\x01\0\0", b"wrapped\x02\0\0\0", b"wrapped\0\0\0\0", b"x"]
)
def test_a_layer_that_was_not_offered(choice: bytes) -> None:
    login = begin(FakeContext(has_last_token=False))
    login.step(b"ticket", 0)
    with pytest.raises(LoginFailed) as caught:
        login.step(choice, 0)
    assert caught.value.reason == ""


def test_a_wrong_ticket() -> None:
    with pytest.raises(LoginFailed, match="Kerberos: wrong key") as caught:
        begin(FakeContext()).step(b"wrong", 0)
    assert caught.value.reason == ""


def test_a_token_where_none_is_expected() -> None:
    login = begin(FakeContext())
    login.step(b"ticket", 0)
    with pytest.raises(LoginFailed, match="after the context was established"):
        login.step(b"more", 0)


@pytest.mark.parametrize("principal", ["alice@OTHER", "a/b/c@REALM"])
def test_a_principal_that_is_no_user(principal: str) -> None:
    login = begin(FakeContext(has_last_token=False, principal=principal))
    login.step(b"ticket", 0)
    with pytest.raises(LoginFailed, match=r"sasl.kerberos.principal.to.local.rules"):
        login.step(CHOICE, 0)


# --- this broker as a client


def initiator(context: FakeContext) -> Initiator:
    return Initiator(lambda: context, Failure)


class ClientContext(FakeContext):
    """The same from the other side: the first token is its own."""

    def step(self, token: bytes = b"") -> bytes | None:
        return super().step(token)


def test_a_login_at_another_broker() -> None:
    login = initiator(ClientContext(rounds=2, has_last_token=False))
    assert login.first() == b"reply"
    assert login.next(b"token") == b""
    assert login.next(b"wrapped" + LAYERS_OFFERED) == b"wrapped" + LAYER_CHOSEN
    assert login.next(b"") is None


@pytest.mark.parametrize("challenge", [b"wrapped\x02\0\0\0", b"wrapped\x01", b"not signed"])
def test_another_broker_that_wants_a_layer_or_signs_nothing(challenge: bytes) -> None:
    login = initiator(ClientContext(has_last_token=False))
    login.first()
    with pytest.raises(KerberosFailed):
        login.next(challenge)


def test_another_broker_with_a_wrong_key() -> None:
    login = initiator(ClientContext(rounds=2))
    login.first()
    with pytest.raises(KerberosFailed, match="Kerberos: wrong key"):
        login.next(b"wrong")


# --- settings


@pytest.mark.parametrize(
    ("options", "service", "cause"),
    [
        ({}, None, "the Kerberos login of listener SASL has no keyTab"),
        ({"keyTab": "/k"}, None, "the Kerberos login of listener SASL has no principal"),
        ({"keyTab": "/no/such", "principal": "kafka/h@R"}, None, "the keytab /no/such cannot be found"),
        ({"keyTab": "KEYTAB", "principal": "kafka/h@R"}, "other", "kafka/h@R is not of the service other"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, options: dict[str, str], service: str | None, cause: str) -> None:
    keytab = tmp_path / "keytab"
    keytab.touch()
    options = {name: value.replace("KEYTAB", str(keytab)) for name, value in options.items()}
    with pytest.raises(LoginConfigError, match=cause):
        own_key("SASL", options, service)
