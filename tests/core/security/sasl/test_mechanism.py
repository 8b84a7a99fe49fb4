"""The texts of a refused login."""

from __future__ import annotations

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoginFailed


def test_the_log_gets_the_reason_of_the_client_unless_there_is_a_better_one() -> None:
    assert LoginFailed("no").log_reason == "no"
    assert str(LoginFailed("no", log_reason="user unknown")) == "user unknown"
    assert LoginFailed(log_reason="user unknown").reason == ""


def test_a_token_login_is_the_same_principal() -> None:
    assert Principal("User", "a", token_authenticated=True) == Principal("User", "a")
