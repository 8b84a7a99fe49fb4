"""OAUTHBEARER: the client's message, the two ways in which a login ends, and that no error shows a token."""

from __future__ import annotations

import pytest

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed
from kpybroker.core.security.sasl.oauthbearer import (
    BearerToken,
    OAuthBearerMechanism,
    TokenRefused,
    parse_first_message,
)
from tests.support.network.bearer import message


class Accepting:
    def validate(self, token: str, now_ms: int) -> BearerToken:
        return BearerToken("alice", now_ms + 1000)


class Refusing:
    def __init__(self, scope: str | None = None) -> None:
        self.scope = scope

    def validate(self, token: str, now_ms: int) -> BearerToken:
        raise TokenRefused("it has expired", self.scope)


def test_a_good_token_logs_in_at_once_and_limits_the_session() -> None:
    end = OAuthBearerMechanism(Accepting()).begin().step(message("abc.def."), 5)
    assert end == LoggedIn(Principal("User", "alice"), b"", 1005)


def test_a_bad_token_is_refused_in_two_steps() -> None:
    login = OAuthBearerMechanism(Refusing()).begin()
    assert login.step(message("secret"), 5) == b'{"status":"invalid_token"}'
    with pytest.raises(LoginFailed) as caught:
        login.step(b"\x01", 5)
    assert caught.value.reason == '{"status":"invalid_token"}'
    assert caught.value.log_reason == "bearer token refused: it has expired"


def test_a_missing_scope_is_named() -> None:
    login = OAuthBearerMechanism(Refusing('[a"b, c]')).begin()
    assert login.step(message("x"), 5) == b'{"status":"insufficient_scope", "scope":"[a\\"b, c]"}'


def test_after_a_refusal_a_client_may_send_another_token_instead() -> None:
    login = OAuthBearerMechanism(Refusing()).begin()
    login.step(message("x"), 5)
    assert login.step(message("y"), 5) == b'{"status":"invalid_token"}'


def test_the_confirmation_means_nothing_without_a_refusal() -> None:
    with pytest.raises(LoginFailed, match="Invalid OAUTHBEARER client first message"):
        OAuthBearerMechanism(Accepting()).begin().step(b"\x01", 5)


def test_an_authorization_id_must_be_that_of_the_token() -> None:
    assert isinstance(OAuthBearerMechanism(Accepting()).begin().step(message("x", "alice"), 5), LoggedIn)
    with pytest.raises(LoginFailed, match=r"authorization id \(bob\) that is different from the token's principal"):
        OAuthBearerMechanism(Accepting()).begin().step(message("x", "bob"), 5)


def test_extensions_are_read() -> None:
    first = parse_first_message(message("x.y.z", "a=2Cb", traceId="12 3"))
    assert first == ("a,b", "x.y.z", {"traceId": "12 3"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"n,,",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer secret\x01\x01",
        b"n,,\x01auth=Bearer secret\x01",
        b"n,,\x01auth=Basic secret\x01\x01",
        b"n,,\x01auth=Bearer sec,ret\x01\x01",
        b"n,,\x01auth=secret\x01\x01",
        b"n,,\x01auth=Bearer secret\x01x1=1\x01\x01",
        b"n,,\x01auth=Bearer secret\x01x=\x01\x01",
        b"n,a==,\x01auth=Bearer secret\x01\x01",
        b"n,a==2D,\x01auth=Bearer secret\x01\x01",
    ],
)
def test_malformed_messages_are_refused_without_showing_them(data: bytes) -> None:
    with pytest.raises(LoginFailed) as caught:
        parse_first_message(data)
    assert "sec" not in caught.value.reason + caught.value.log_reason


def test_a_long_message_is_read_in_time_that_grows_with_its_length() -> None:
    parse_first_message(message("x" * 60_000, traceId="y" * 60_000))
    with pytest.raises(LoginFailed):
        parse_first_message(b"n,,\x01auth=Bearer " + b"x" * 120_000)
