"""Claims of signed tokens, and unsecured tokens."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.core.security.sasl.bearer_tokens import (
    TIME_MS_MAX,
    Expected,
    UnsecuredValidator,
    check_claims,
    decode_part,
)
from kpybroker.core.security.sasl.oauthbearer import BearerToken, TokenRefused
from tests.support.network.bearer import encoded, unsecured

NOW_MS = 1_000_000
GOOD: dict[str, Any] = {"sub": "alice", "iat": 990, "exp": 1100}
STRICT = Expected(audiences=("kafka", "other"), issuer="https://issuer", skew_ms=0)
FOR_US: dict[str, Any] = GOOD | {"aud": "kafka", "iss": "https://issuer"}


def refusal(claims: dict[str, Any], expected: Expected) -> str:
    with pytest.raises(TokenRefused) as caught:
        check_claims(claims, expected, NOW_MS)
    return str(caught.value)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, Expected()),
        ({"exp": 980, "iat": 970}, Expected(skew_ms=30_000)),
        ({"nbf": 1020}, Expected(skew_ms=30_000)),
        ({"exp": 1000.5}, Expected(skew_ms=0)),
        ({"scope": "read"}, Expected()),
        ({"scope": ["read", "write"]}, Expected()),
        ({"iss": "anyone"}, Expected()),
        ({"aud": "kafka", "iss": "https://issuer"}, STRICT),
        ({"aud": ["x", "other"], "iss": "https://issuer"}, STRICT),
    ],
)
def test_accepted(more: dict[str, Any], expected: Expected) -> None:
    claims = GOOD | more
    assert check_claims(claims, expected, NOW_MS) == BearerToken("alice", int(claims["exp"] * 1000))


@pytest.mark.parametrize("late", [10**30, 1e300])
def test_a_time_that_fits_nowhere_is_a_late_one(late: float) -> None:
    assert check_claims(GOOD | {"exp": late}, Expected(), NOW_MS).expires_ms == TIME_MS_MAX
    assert refusal(GOOD | {"exp": -late}, Expected()) == "the token has expired"


def test_other_names_of_claims() -> None:
    expected = Expected(subject_claim="client_id", scope_claim="scp")
    claims = {"client_id": "app", "scp": ["a"], "scope": ["", ""], "iat": 990, "exp": 1100}
    assert check_claims(claims, expected, NOW_MS).subject == "app"
    assert refusal(GOOD, expected) == "the claim client_id is missing or empty"


@pytest.mark.parametrize(
    ("more", "expected", "reason"),
    [
        ({"exp": 970}, Expected(), "the token has expired"),
        ({"exp": 1000}, Expected(skew_ms=0), "the token has expired"),
        ({"exp": None}, Expected(), "the claim exp is missing or no time"),
        ({"exp": "1100"}, Expected(), "the claim exp is missing or no time"),
        ({"exp": True}, Expected(), "the claim exp is missing or no time"),
        ({"exp": float("inf")}, Expected(), "the claim exp is missing or no time"),
        ({"iat": None}, Expected(), "the claim iat is missing or no time"),
        ({"iat": 1100}, Expected(), "the token expires before it was issued"),
        ({"nbf": 1031}, Expected(), "the token is not valid yet"),
        ({"sub": ""}, Expected(), "the claim sub is missing or empty"),
        ({"sub": " "}, Expected(), "the claim sub is missing or empty"),
        ({"sub": 7}, Expected(), "the claim sub is missing or empty"),
        ({"scope": ["a", "a"]}, Expected(), "the claim scope has empty or repeated scopes"),
        ({"scope": ["a", 7]}, Expected(), "the claim scope has empty or repeated scopes"),
        ({"scope": ""}, Expected(), "the claim scope has empty or repeated scopes"),
        ({"aud": "kafka"}, Expected(), "the token is not for an audience of sasl.oauthbearer.expected.audience"),
        ({"iss": "https://issuer"}, STRICT, "the token is not for an audience of sasl.oauthbearer.expected.audience"),
        (
            {"iss": "https://issuer", "aud": ["x"]},
            STRICT,
            "the token is not for an audience of sasl.oauthbearer.expected.audience",
        ),
        (
            {"aud": "kafka", "iss": "https://issuer/"},
            STRICT,
            "the token has another issuer than sasl.oauthbearer.expected.issuer",
        ),
        ({"aud": "kafka"}, STRICT, "the token has another issuer than sasl.oauthbearer.expected.issuer"),
    ],
)
def test_refused(more: dict[str, Any], expected: Expected, reason: str) -> None:
    claims = {name: value for name, value in (GOOD | more).items() if value is not None}
    assert refusal(claims, expected) == reason


@pytest.mark.parametrize("part", ["é", "a b", "!!!!", encoded(b"[1]"), encoded(b"{"), encoded(b"\xff"), "a"])
def test_parts_that_cannot_be_read(part: str) -> None:
    with pytest.raises(TokenRefused):
        decode_part(part)


def test_a_deeply_nested_part_is_refused() -> None:
    with pytest.raises(TokenRefused):
        decode_part(encoded(b'{"a":' + b"[" * 100_000))


# --- without a signature


def test_unsecured_tokens_are_believed() -> None:
    assert UnsecuredValidator().validate(unsecured(**GOOD), NOW_MS) == BearerToken("alice", 1_100_000)
    assert UnsecuredValidator().validate(unsecured(sub="bob", exp=1100), NOW_MS).subject == "bob"
    validator = UnsecuredValidator("name", "scp", ("a", "b"), 2000)
    token = unsecured(name="carol", exp=999, scp=["b", "a", "c"])
    assert validator.validate(token, NOW_MS) == BearerToken("carol", 999_000)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "a.b",
        unsecured(**GOOD).rstrip("."),
        unsecured(**GOOD) + "c2ln",
        unsecured(**GOOD) + ".",
        f"{encoded({'alg': 'HS256'})}.{encoded(GOOD)}.",
        f"{encoded({})}.{encoded(GOOD)}.",
        unsecured(exp=1100),
        unsecured(sub="alice"),
        unsecured(sub="alice", exp=1000),
        unsecured(sub="alice", exp=1100, iat=1001),
        unsecured(sub="alice", exp=1100, iat=1100),
    ],
)
def test_unsecured_tokens_that_are_refused(token: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        UnsecuredValidator().validate(token, NOW_MS)
    assert caught.value.scope is None


def test_an_unsecured_token_without_the_required_scope() -> None:
    with pytest.raises(TokenRefused) as caught:
        UnsecuredValidator(required_scope=("a", "b")).validate(unsecured(**GOOD, scope="a"), NOW_MS)
    assert caught.value.scope == "[a, b]"
