"""Signed tokens: signatures, algorithms, keys that change, and documents that cannot be read."""

from __future__ import annotations

import hmac
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwk

from kpybroker.broker.security.jwks import (
    DOCUMENT_BYTES_MAX,
    UNKNOWN_KEY_PAUSE_S,
    UNKNOWN_KEY_WAITERS_MAX,
    Jwks,
    JwksUnavailable,
    Pace,
    SignedValidator,
    parse_keys,
    reader,
)
from kpybroker.core.security.sasl.bearer_tokens import Expected
from kpybroker.core.security.sasl.oauthbearer import BearerToken, TokenRefused
from tests.support.network.bearer import document, encoded, jwks_server, rsa_key, signed

NOW_MS = 1_000_000
CLAIMS: dict[str, Any] = {"sub": "alice", "iat": 990, "exp": 1100}
PACE = Pace(refresh_s=3600, backoff_s=1, backoff_max_s=4)
RSA = rsa_key("one")
OTHER = rsa_key("two")


class Source:
    """A document that can change and fail."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fails = False
        self.reads = 0
        self.now_s = 0.0

    def read(self) -> bytes:
        self.reads += 1
        if self.fails:
            raise JwksUnavailable("down")
        return self.data


def of(source: Source) -> SignedValidator:
    return SignedValidator(Jwks(source.read, PACE, lambda: source.now_s), Expected())


def accepts(validator: SignedValidator, token: str) -> bool:
    try:
        return validator.validate(token, NOW_MS) == BearerToken("alice", 1_100_000)
    except TokenRefused:
        return False


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        *((RSA, name) for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        (jwk.ECKey.generate_key("P-256"), "ES256"),
        (jwk.ECKey.generate_key("P-384"), "ES384"),
        (jwk.ECKey.generate_key("P-521"), "ES512"),
        (jwk.OKPKey.generate_key("Ed25519"), "EdDSA"),
        (jwk.OKPKey.generate_key("Ed25519"), "Ed25519"),
    ],
)
def test_every_allowed_algorithm(key: Any, algorithm: str) -> None:
    validator = of(Source(document(key)))
    token = signed(key, CLAIMS, algorithm)
    assert accepts(validator, token)
    head, _, signature = token.split(".")
    assert not accepts(validator, f"{head}.{encoded(CLAIMS | {'sub': 'root'})}.{signature}")


def test_a_token_cannot_choose_no_signature() -> None:
    validator = of(Source(document(RSA)))
    for algorithm in ("none", "None", "NONE", "", None, 7, ["RS256"]):
        head = encoded({"alg": algorithm, "kid": "one"})
        for signature in ("", "c2ln"):
            assert not accepts(validator, f"{head}.{encoded(CLAIMS)}.{signature}")


def test_a_token_cannot_be_signed_with_the_public_key_as_a_password() -> None:
    signed_part = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(CLAIMS)}"
    signature = hmac.digest(RSA.as_pem(private=False), signed_part.encode(), "sha256")
    assert not accepts(of(Source(document(RSA))), f"{signed_part}.{encoded(signature)}")


def test_a_symmetric_key_in_the_document_is_not_used() -> None:
    secret = jwk.OctKey.generate_key(256, {"kid": "shared"})
    shared = json.loads(document(RSA))
    shared["keys"].append(secret.as_dict(private=True))
    assert not accepts(of(Source(json.dumps(shared).encode())), signed(secret, CLAIMS, "HS256"))


def test_a_key_of_the_token_itself_is_not_used() -> None:
    token = signed(OTHER, CLAIMS, jwk=OTHER.as_dict(private=False))
    assert not accepts(of(Source(document(RSA))), token)


def test_a_critical_header_that_is_not_understood_is_refused() -> None:
    head, payload, signature = signed(RSA, CLAIMS).split(".")
    head = encoded({"alg": "RS256", "kid": "one", "crit": ["b64"], "b64": True})
    assert not accepts(of(Source(document(RSA))), f"{head}.{payload}.{signature}")


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "a.b.c.d", "é", encoded({"alg": "RS256"}), "." * 1000])
def test_what_is_no_token(token: str) -> None:
    assert not accepts(of(Source(document(RSA))), token)


def test_a_token_without_a_key_id_may_fit_any_key() -> None:
    key = rsa_key(None)
    validator = of(Source(document(RSA, key)))
    assert accepts(validator, signed(key, CLAIMS))
    assert not accepts(validator, signed(rsa_key(None), CLAIMS))


def test_a_key_for_encryption_or_a_weak_one_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    for_encryption = jwk.RSAKey.import_key(rsa_key("enc").as_dict(private=True) | {"use": "enc"})
    weak = rsa_key("weak", 1024)
    broken = {"kty": "RSA", "n": "x"}
    values = json.loads(document(RSA, for_encryption, weak))
    values["keys"] += [broken, {"kty": "unknown"}, 7]
    assert [key.kid for key in parse_keys(json.dumps(values).encode())] == ["one"]
    assert "has 1024 bits; 2048 are needed" in caplog.text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"keys": []}',
        b'{"keys": 7}',
        b'{"keys": [{}]}',
        b"\xff",
        b'{"keys":' + b"[" * 100_000,
        b" " * (DOCUMENT_BYTES_MAX + 1),
    ],
)
def test_what_is_no_document(data: bytes) -> None:
    with pytest.raises(JwksUnavailable):
        parse_keys(data)


# --- keys that change


def test_a_new_key_is_found_at_its_first_token_and_the_old_one_is_gone() -> None:
    source = Source(document(RSA))
    validator = of(source)
    assert accepts(validator, signed(RSA, CLAIMS))
    source.data = document(OTHER)
    assert accepts(validator, signed(OTHER, CLAIMS))
    assert not accepts(validator, signed(RSA, CLAIMS))
    assert source.reads == 2


def test_unknown_key_ids_cause_one_read_in_a_while() -> None:
    source = Source(document(RSA))
    validator = of(source)
    for number in range(50):
        assert not accepts(validator, signed(rsa_key_named(f"made-up-{number}"), CLAIMS))
    assert source.reads == 2
    source.now_s += UNKNOWN_KEY_PAUSE_S
    assert not accepts(validator, signed(rsa_key_named("made-up"), CLAIMS))
    assert source.reads == 3
    assert accepts(validator, signed(RSA, CLAIMS))


def test_a_slow_read_for_unknown_keys_leaves_threads_for_others() -> None:
    reading, go_on = threading.Event(), threading.Event()
    source = Source(document(RSA))
    jwks = Jwks(source.read, PACE, lambda: source.now_s)
    validator = SignedValidator(jwks, Expected())
    assert accepts(validator, signed(RSA, CLAIMS))

    def slow() -> bytes:
        reading.set()
        assert go_on.wait(60)
        return document(RSA, OTHER)

    jwks._read = slow
    token = signed(OTHER, CLAIMS)
    ends: list[bool] = []
    waiting = [
        threading.Thread(target=lambda: ends.append(accepts(validator, token))) for _ in range(UNKNOWN_KEY_WAITERS_MAX)
    ]
    for thread in waiting:
        thread.start()
    assert reading.wait(60)
    while jwks._may_wait.acquire(blocking=False):
        jwks._may_wait.release()
    assert not accepts(validator, token)  # at once: it does not wait
    assert accepts(validator, signed(RSA, CLAIMS))
    go_on.set()
    for thread in waiting:
        thread.join()
    assert ends == [True] * UNKNOWN_KEY_WAITERS_MAX


def rsa_key_named(key_id: str) -> jwk.RSAKey:
    return jwk.RSAKey.import_key(OTHER.as_dict(private=True) | {"kid": key_id})


def test_the_document_is_read_again_in_time() -> None:
    source = Source(document(RSA))
    validator = of(source)
    assert accepts(validator, signed(RSA, CLAIMS))
    source.now_s = 3599
    assert accepts(validator, signed(RSA, CLAIMS))
    assert source.reads == 1
    source.now_s = 3600
    assert accepts(validator, signed(RSA, CLAIMS))
    assert source.reads == 2


def test_old_keys_are_used_while_the_document_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    source = Source(document(RSA))
    validator = of(source)
    assert accepts(validator, signed(RSA, CLAIMS))
    source.now_s, source.fails = 3600, True
    for reads, wait_s in ((2, 1), (3, 2), (4, 4), (5, 4)):
        for _ in range(3):
            assert accepts(validator, signed(RSA, CLAIMS))
        assert source.reads == reads
        source.now_s += wait_s
    source.fails = False
    assert accepts(validator, signed(RSA, CLAIMS))
    assert caplog.text.count("cannot be read, next attempt in") == 4


def test_without_any_keys_no_token_is_good(caplog: pytest.LogCaptureFixture) -> None:
    source = Source(document(RSA))
    source.fails = True
    validator = of(source)
    assert not accepts(validator, signed(RSA, CLAIMS))
    source.now_s, source.fails = 100, False
    assert accepts(validator, signed(RSA, CLAIMS))


def test_threads_that_begin_together_read_once() -> None:
    source = Source(document(RSA))
    validator = of(source)
    token = signed(RSA, CLAIMS)
    ends: list[bool] = []
    threads = [threading.Thread(target=lambda: ends.append(accepts(validator, token))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == [True] * 8
    assert source.reads == 1


# --- where it is


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "the keys.json"
    path.write_bytes(document(RSA))
    assert parse_keys(reader(path.as_uri())())[0].kid == "one"
    path.unlink()
    with pytest.raises(JwksUnavailable, match="No such file"):
        reader(path.as_uri())()


@pytest.mark.parametrize("url", ["", "keys.json", "http://localhost/keys", "ftp://localhost/keys", "file://host/x"])
def test_other_urls(url: str) -> None:
    with pytest.raises(ValueError, match="not a file: or https: URL"):
        reader(url)


def test_https_with_a_certificate_authority(tmp_path: Path) -> None:
    with jwks_server(tmp_path, document(RSA)) as server:
        assert reader(server.url, str(server.ca_file))() == server.document
        with pytest.raises(JwksUnavailable, match="certificate verify failed"):
            reader(server.url)()
        server.status, server.location = 302, server.url
        before = server.requests
        with pytest.raises(JwksUnavailable, match="responded with status 302"):
            reader(server.url, str(server.ca_file))()
        assert server.requests == before + 1
        server.status, server.location = 200, None
        server.document = b" " * (2 * DOCUMENT_BYTES_MAX)
        with pytest.raises(JwksUnavailable, match="more than"):
            parse_keys(reader(server.url, str(server.ca_file))())
    with pytest.raises(JwksUnavailable, match="refused"):
        reader(server.url, str(server.ca_file))()


def test_https_of_a_server_of_another_name(tmp_path: Path) -> None:
    with (
        jwks_server(tmp_path, document(RSA), "other.example") as server,
        pytest.raises(JwksUnavailable, match="certificate verify failed"),
    ):
        reader(server.url, str(server.ca_file))()


def test_no_log_shows_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = signed(OTHER, CLAIMS)
    with pytest.raises(TokenRefused) as caught:
        of(Source(document(RSA))).validate(token, NOW_MS)
    shown = caplog.text + str(caught.value) + repr(caught.value)
    assert not any(part in shown for part in token.split("."))
