"""SASL mechanisms, with the example of RFC 7677."""

from __future__ import annotations

import pytest

from kpybroker.client.connect import sasl
from kpybroker.client.connect.errors import CommandError

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_is_that_of_the_rfc() -> None:
    exchange = sasl.scram("sha256", "user", "pencil", NONCE)
    assert next(exchange) == f"n,,n=user,r={NONCE}".encode()
    assert exchange.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        exchange.send(SERVER_FINAL)


@pytest.mark.parametrize("first", [b"r=other,s=AA==,i=4096", b"e=unknown-user", SERVER_FIRST.replace(b"rOpr", b"XXXX")])
def test_scram_refuses_a_server_that_is_not_in_the_exchange(first: bytes) -> None:
    exchange = sasl.scram("sha256", "user", "pencil", NONCE)
    next(exchange)
    with pytest.raises(CommandError):
        exchange.send(first)


def test_scram_refuses_a_server_that_does_not_know_the_password() -> None:
    exchange = sasl.scram("sha256", "user", "pencil", NONCE)
    next(exchange)
    exchange.send(SERVER_FIRST)
    with pytest.raises(CommandError, match="does not know"):
        exchange.send(b"v=AAAA")


def test_names_are_escaped_and_plain_is_one_message() -> None:
    assert next(sasl.scram("sha512", "a=b,c", "p", "n")) == b"n,,n=a=3Db=2Cc,r=n"
    assert list(sasl.plain("u", "p")) == [b"\0u\0p"]


def test_a_mechanism_that_is_not_here_and_a_missing_password_are_named() -> None:
    with pytest.raises(CommandError, match="=GSSAPI"):
        sasl.exchange({})
    with pytest.raises(CommandError, match=r"PLAIN needs sasl\.password"):
        sasl.exchange({"sasl.mechanism": "PLAIN", "sasl.username": "u"})
    assert next(sasl.exchange({"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"})) == b"\0u\0p"
