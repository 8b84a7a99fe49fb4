"""Credentials in Kafka's format, and the arithmetic of RFC 5802 and RFC 7677."""

from __future__ import annotations

import base64

import pytest

from kpybroker.core.security.scram import (
    ScramMechanism,
    client_proof,
    escape_name,
    format_credential,
    is_proof_of,
    make_credential,
    parse_credential,
    salted_password,
    server_signature,
    unescape_name,
)

# RFC 7677, section 3: the user "user" with the password "pencil"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
AUTH_MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
CREDENTIAL = make_credential(ScramMechanism.SHA_256, "pencil", SALT, 4096)

KAFKAS = (
    "salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
    "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,iterations=4096"
)


def test_the_example_of_rfc_7677() -> None:
    salted = salted_password(ScramMechanism.SHA_256, "pencil", SALT, 4096)
    assert client_proof(ScramMechanism.SHA_256, salted, AUTH_MESSAGE) == PROOF
    assert is_proof_of(ScramMechanism.SHA_256, CREDENTIAL, AUTH_MESSAGE, PROOF)
    assert server_signature(ScramMechanism.SHA_256, CREDENTIAL.server_key, AUTH_MESSAGE) == SIGNATURE


@pytest.mark.parametrize(
    "proof", [b"", PROOF[:-1], PROOF + b"\0", bytes([PROOF[0] ^ 1]) + PROOF[1:], bytes(32), b"x" * 5000]
)
def test_any_other_proof_is_refused(proof: bytes) -> None:
    assert not is_proof_of(ScramMechanism.SHA_256, CREDENTIAL, AUTH_MESSAGE, proof)


def test_kafkas_text_both_ways() -> None:
    assert format_credential(CREDENTIAL) == KAFKAS
    assert parse_credential(KAFKAS) == CREDENTIAL


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_credential_survives_its_text(mechanism: ScramMechanism) -> None:
    credential = make_credential(mechanism, "pässword", b"salt", 8192)
    assert len(credential.stored_key) == mechanism.size
    assert parse_credential(format_credential(credential)) == credential


@pytest.mark.parametrize(
    "text",
    ["", "salt=YQ==", KAFKAS + ",more=1", KAFKAS.replace("4096", "many"), KAFKAS.replace("W22Z", "****"), "=,=,=,="],
)
def test_other_texts_are_refused_without_showing_them(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a SCRAM credential") as caught:
        parse_credential(text)
    assert "stored_key=" not in str(caught.value)


def test_no_repr_shows_a_key() -> None:
    assert repr(CREDENTIAL) == "ScramCredential(iterations=4096)"


@pytest.mark.parametrize("name", ["alice", "a=b,c", "=2C", ",=", "=3D2C"])
def test_names_survive_escaping(name: str) -> None:
    assert unescape_name(escape_name(name)) == name


@pytest.mark.parametrize("name", ["a=b", "=", "=2c", "=3"])
def test_an_equals_sign_that_escapes_nothing_is_refused(name: str) -> None:
    assert unescape_name(name) is None
