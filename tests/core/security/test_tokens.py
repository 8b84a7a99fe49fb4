"""The rules of delegation tokens: times, who may do what, the form in the tree."""

from __future__ import annotations

import pytest

from kpybroker.core.authorizer import Principal
from kpybroker.core.security.secret import Secret
from kpybroker.core.security.tokens import (
    Lifetimes,
    Token,
    check_connection,
    check_renewers,
    expired,
    from_stored,
    hmac_of,
    may_describe,
    new_token,
    password_of,
    renewed,
    to_stored,
)
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.znodes import DelegationToken

ALICE, BOB, CAROL, DAVE = (Principal("User", name) for name in ("alice", "bob", "carol", "dave"))
LIFETIMES = Lifetimes(max_ms=1000, expiry_ms=100)
NOW_MS = 10_000


def token(max_lifetime_ms: int = -1) -> Token:
    """Of alice, asked for by bob, renewed by carol."""
    return new_token("id", (ALICE, BOB, (CAROL,)), max_lifetime_ms, LIFETIMES, NOW_MS)


def code_of(caught: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return caught.value.code


@pytest.mark.parametrize(
    ("asked_ms", "max_ms", "expiry_ms"),
    [(-1, 11_000, 10_100), (0, 11_000, 10_100), (50, 10_050, 10_050), (500, 10_500, 10_100), (9999, 11_000, 10_100)],
)
def test_a_token_lives_as_long_as_asked_within_the_limits(asked_ms: int, max_ms: int, expiry_ms: int) -> None:
    new = token(asked_ms)
    assert (new.issue_timestamp_ms, new.max_timestamp_ms, new.expiry_timestamp_ms) == (NOW_MS, max_ms, expiry_ms)


def test_times_fit_into_a_response_whatever_the_limits_are() -> None:
    largest = (1 << 63) - 1
    new = new_token("id", (ALICE, BOB, ()), largest, Lifetimes(largest, largest), NOW_MS)
    assert (new.max_timestamp_ms, new.expiry_timestamp_ms) == (largest, largest)
    assert renewed(new, ALICE, largest, LIFETIMES, NOW_MS).expiry_timestamp_ms == largest


def test_a_token_is_usable_at_its_expiry_and_not_after_it() -> None:
    assert not token().is_expired(10_100)
    assert token().is_expired(10_101)


@pytest.mark.parametrize(("period_ms", "expiry_ms"), [(-1, 10_150), (0, 10_050), (700, 10_750), (5000, 11_000)])
def test_a_renewal_counts_from_now_up_to_the_maximum(period_ms: int, expiry_ms: int) -> None:
    assert renewed(token(), CAROL, period_ms, LIFETIMES, 10_050).expiry_timestamp_ms == expiry_ms


@pytest.mark.parametrize("principal", [BOB, DAVE])
def test_only_owner_and_renewers_renew_and_expire(principal: Principal) -> None:
    with pytest.raises(KafkaError) as caught:
        renewed(token(), principal, -1, LIFETIMES, NOW_MS)
    assert code_of(caught) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    with pytest.raises(KafkaError) as caught:
        expired(token(), principal, -1, NOW_MS)
    assert code_of(caught) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_expired_token_is_not_renewed_but_can_be_removed() -> None:
    with pytest.raises(KafkaError) as caught:
        renewed(token(), ALICE, -1, LIFETIMES, 10_101)
    assert code_of(caught) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    with pytest.raises(KafkaError) as caught:
        expired(token(), ALICE, 0, 10_101)
    assert code_of(caught) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expired(token(), ALICE, -1, 10_101) is None


def test_expiry_in_a_while() -> None:
    changed = expired(token(), ALICE, 20, 10_050)
    assert changed is not None
    assert changed.expiry_timestamp_ms == 10_070


@pytest.mark.parametrize(
    ("protocol", "principal", "is_allowed"),
    [
        ("PLAINTEXT", Principal(), False),
        ("SSL", Principal(), False),
        ("SSL", Principal("User", "CN=client"), True),
        ("SASL_PLAINTEXT", ALICE, True),
        ("SASL_SSL", ALICE, True),
        ("SASL_SSL", Principal("User", "alice", token_authenticated=True), False),
        ("SASL_SSL", Principal(), True),  # Kafka looks at the principal on SSL only
    ],
)
def test_which_connections_may_ask(protocol: str, principal: Principal, is_allowed: bool) -> None:
    if is_allowed:
        check_connection(protocol, principal)
        return
    with pytest.raises(KafkaError) as caught:
        check_connection(protocol, principal)
    assert code_of(caught) is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_renewers_are_users() -> None:
    check_renewers([ALICE, BOB])
    with pytest.raises(KafkaError) as caught:
        check_renewers([ALICE, Principal("Group", "staff")])
    assert code_of(caught) is ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize(
    ("principal", "owners", "is_authorized", "is_shown"),
    [
        (ALICE, None, False, True),
        (BOB, None, False, True),
        (CAROL, None, False, True),
        (DAVE, None, False, False),
        (DAVE, None, True, True),
        (ALICE, [DAVE], True, False),
        (DAVE, [ALICE], True, True),
        (ALICE, [DAVE, CAROL], False, True),
        (ALICE, [], True, False),
    ],
)
def test_who_sees_a_token(
    principal: Principal, owners: list[Principal] | None, is_authorized: bool, is_shown: bool
) -> None:
    assert may_describe(token(), principal, owners, lambda _: is_authorized) is is_shown


def test_the_stored_form_and_back() -> None:
    one = new_token("id", (Principal("User", "CN=a:b,O=c"), BOB, (CAROL, DAVE)), -1, LIFETIMES, NOW_MS)
    assert from_stored(to_stored(one)) == one


def test_a_stored_principal_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match="'alice' is not a principal"):
        from_stored(DelegationToken("id", "alice", "User:bob", (), 1, 2, 3))


def test_the_secret_of_a_token_is_that_of_java() -> None:
    # jshell: Mac HmacSHA512 with the key "secret-key" of the text "fkZ2TuhoQkOQnmAVQuSe8w"; see test_tokens in
    # compat_tests/security, where Kafka's own broker accepts tokens of ours.
    one = hmac_of(Secret("secret-key"), "fkZ2TuhoQkOQnmAVQuSe8w")
    assert len(one) == 64
    assert len(password_of(one)) == 88
    assert one != hmac_of(Secret("secret-kez"), "fkZ2TuhoQkOQnmAVQuSe8w")
