"""The client's side of OAUTHBEARER agrees with the server's, and options of the JAAS module become claims."""

from __future__ import annotations

import pytest

from kpybroker.core.security.sasl.bearer_client import (
    EXTENSION,
    Lifetime,
    extensions_of,
    first_message,
    is_token,
    lifetime_of,
    unsecured_tokens,
)
from kpybroker.core.security.sasl.bearer_tokens import UnsecuredValidator, decode_part
from kpybroker.core.security.sasl.oauthbearer import BearerToken, parse_first_message

NOW_MS = 1_700_000_000_000


def claims_of(**options: str) -> dict[str, object]:
    tokens = unsecured_tokens({f"unsecuredLogin{name}": value for name, value in options.items()})
    assert tokens is not None
    return decode_part(tokens.make(NOW_MS).split(".")[1])


def test_the_message_is_what_the_server_reads() -> None:
    first = parse_first_message(first_message("a.b.c", {"traceId": "7"}))
    assert (first.authorization_id, first.token, first.extensions) == ("", "a.b.c", {"traceId": "7"})


def test_options_become_claims() -> None:
    found = claims_of(
        StringClaim_sub="broker",
        NumberClaim_level="2.5",
        ListClaim_scope="|a|b c",
        ListClaim_none="|",
        StringClaim_exp="never",
    )
    times = {"iat": NOW_MS / 1000, "exp": NOW_MS / 1000 + 3600}
    assert found == {"sub": "broker", "level": 2.5, "scope": ["a", "b c"], "none": [], **times}


def test_the_validator_takes_what_is_made() -> None:
    options = {
        "unsecuredLoginStringClaim_name": "broker",
        "unsecuredLoginPrincipalClaimName": "name",
        "unsecuredLoginLifetimeSeconds": "60",
    }
    tokens = unsecured_tokens(options)
    assert tokens is not None
    token = tokens.make(NOW_MS)
    assert is_token(token)
    assert UnsecuredValidator("name").validate(token, NOW_MS) == BearerToken("broker", NOW_MS + 60_000)
    assert lifetime_of(token) == Lifetime(NOW_MS, NOW_MS + 60_000)


@pytest.mark.parametrize("options", [{}, {"unsecuredValidatorRequiredScope": "a"}, {"unsecuredLoginExtension_a": "b"}])
def test_without_a_claim_there_is_no_token(options: dict[str, str]) -> None:
    assert unsecured_tokens(options) is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"unsecuredLoginStringClaim_name": "x"}, "unsecuredLoginStringClaim_sub is missing"),
        ({"unsecuredLoginLifetimeSeconds": "5"}, "unsecuredLoginStringClaim_sub is missing"),
        ({"unsecuredLoginStringClaim_sub": " "}, "unsecuredLoginStringClaim_sub is missing"),
        ({"unsecuredLoginNumberClaim_n": "many"}, "unsecuredLoginNumberClaim_n is no number"),
        ({"unsecuredLoginNumberClaim_n": "NaN"}, "unsecuredLoginNumberClaim_n is no number"),
        ({"unsecuredLoginStringClaim_sub": "x", "unsecuredLoginLifetimeSeconds": "0"}, "no number of seconds"),
        ({"unsecuredLoginStringClaim_sub": "x", "unsecuredLoginLifetimeSeconds": "-1"}, "no number of seconds"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        unsecured_tokens(options)


@pytest.mark.parametrize("name", ["auth", "a1", "", "a-b"])
def test_a_name_that_is_no_extension(name: str) -> None:
    with pytest.raises(ValueError, match=f"extension_{name} is no valid"):
        extensions_of({f"{EXTENSION}{name}": "x"}, EXTENSION)


def test_a_value_cannot_end_an_extension() -> None:
    with pytest.raises(ValueError, match="extension_a is no valid"):
        extensions_of({"extension_a": "x\x01auth=Bearer y"}, EXTENSION)


@pytest.mark.parametrize("token", ["", "opaque", "a.b.c", "e30.e30.", "e30.eyJleHAiOiAieCJ9."])
def test_a_token_that_does_not_say_how_long_it_lives(token: str) -> None:
    assert lifetime_of(token) is None


@pytest.mark.parametrize("text", ["", "a b", "a\x01", "a\n", "ä"])
def test_what_cannot_be_sent_as_a_token(text: str) -> None:
    assert not is_token(text)
