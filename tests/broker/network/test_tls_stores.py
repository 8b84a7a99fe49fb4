"""Stores of each kind are read, and each mistake has a cause and a fix without a secret."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from kpybroker.broker.network.tls_settings import Store, TlsError
from kpybroker.broker.network.tls_stores import (
    Identity,
    check_identity,
    identity_of_pem,
    identity_of_store,
    trusted_of_pem,
    trusted_of_store,
)
from tests.support.network.certificates import PASSWORD, openssl
from tests.support.network.tls_transport import authority


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def path(name: str) -> str:
    return str(authority().directory / name)


def names(identity: Identity) -> list[str]:
    return [certificate.subject.rfc4514_string() for certificate in identity.certificates]


def test_a_key_store_is_pem_or_pkcs12_by_its_type_and_jks_is_what_keytool_writes_today() -> None:
    found = [
        identity_of_store(Store(path("server.pem"), None, "PEM"), None),
        identity_of_store(Store(path("server.p12"), PASSWORD, "PKCS12"), None),
        identity_of_store(Store(path("server.p12"), PASSWORD, "JKS"), PASSWORD),
    ]
    for identity in found:
        assert names(identity) == ["CN=server"]
        check_identity(identity, now)
        assert "PRIVATE" not in repr(identity)
    assert len({identity.key for identity in found}) == 1


def test_pem_may_be_on_one_line_as_in_a_properties_file() -> None:
    text = (authority().directory / "server.pem").read_text()
    chain = (authority().directory / "server.crt").read_text()
    expected = identity_of_pem(text, None, None, "it")
    assert identity_of_pem(chain.replace("\n", " "), text.replace("\n", " "), None, "it").pem == expected.pem
    assert len(trusted_of_pem(chain + authority().certificate.read_text(), "it")) == 2


def test_a_trust_store_is_read_from_each_kind() -> None:
    for store in (Store(path("ca.pem"), None, "PEM"), Store(path("ca.p12"), PASSWORD, "PKCS12")):
        (certificate,) = trusted_of_store(store)
        assert certificate.subject.rfc4514_string() == "CN=authority"


def test_an_encrypted_key_needs_its_own_password(tmp_path: Path) -> None:
    encrypted = tmp_path / "encrypted.pem"
    openssl(
        *("pkcs8", "-topk8", "-in", path("server.key"), "-out", encrypted, "-passout", f"pass:{PASSWORD}"),
    )
    encrypted.write_text(encrypted.read_text() + Path(path("server.crt")).read_text())
    store = Store(str(encrypted), None, "PEM")
    assert names(identity_of_store(store, PASSWORD)) == ["CN=server"]
    for password, cause in ((None, "is encrypted"), ("wrong1", "ssl.key.password is wrong")):
        with pytest.raises(TlsError, match=cause) as raised:
            identity_of_store(store, password)
        assert "wrong1" not in raised.value.cause + raised.value.fix
        assert "ssl.key.password" in raised.value.fix


def written(directory: Path, name: str, data: bytes) -> str:
    (directory / name).write_bytes(data)
    return str(directory / name)


def test_each_mistake_has_a_cause_and_a_fix(tmp_path: Path) -> None:
    jks = written(tmp_path, "old.jks", b"\xfe\xed\xfe\xed" + bytes(40))
    junk = written(tmp_path, "junk", b"hello")
    damaged = written(tmp_path, "bad.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    mistakes = [
        (Store("/no/such", None, "PEM"), "cannot be read: No such file", "correct ssl.keystore.location"),
        (Store(jks, PASSWORD, "JKS"), "in Java's own format JKS", f"keytool -importkeystore -srckeystore {jks}"),
        (Store(path("server.p12"), "wrong1", "PKCS12"), "its password is wrong", "correct ssl.keystore.password"),
        (Store(path("server.p12"), None, "PKCS12"), "its password is wrong", "correct ssl.keystore.password"),
        (Store(path("server.p12"), None, "PEM"), "but the file is PKCS12", "set ssl.keystore.type=PKCS12"),
        (Store(path("server.pem"), None, "JKS"), "but the file is PEM", "set ssl.keystore.type=PEM"),
        (Store(path("server.pem"), None, "BCFKS"), "is of type BCFKS", "set ssl.keystore.type=PEM or PKCS12"),
        (Store(junk, None, "PKCS12"), "neither PEM nor PKCS12", "correct ssl.keystore.location"),
        (Store(junk, None, "PEM"), "holds no certificate", "-----BEGIN CERTIFICATE-----"),
        (Store(path("ca.pem"), None, "PEM"), "holds no private key", "PKCS#8"),
        (Store(path("ca.p12"), PASSWORD, "PKCS12"), "no private key with its certificate", "ssl.truststore.location"),
        (Store(damaged, None, "PEM"), "a certificate that cannot be read", "copy the whole PEM text"),
    ]
    for store, cause, fix in mistakes:
        with pytest.raises(TlsError) as raised:
            identity_of_store(store, None)
        assert cause in raised.value.cause, store
        assert fix in raised.value.fix
        assert "wrong1" not in raised.value.cause + raised.value.fix
    with pytest.raises(TlsError, match="one password"):
        identity_of_store(Store(path("server.p12"), PASSWORD, "PKCS12"), "another")


def test_a_certificate_serves_only_while_it_is_valid_and_with_its_own_key() -> None:
    identity = identity_of_store(Store(path("server.pem"), None, "PEM"), None)
    with pytest.raises(TlsError, match="expired on ") as raised:
        check_identity(identity, lambda: now() + datetime.timedelta(days=30))
    assert raised.value.fix.startswith("renew it")
    with pytest.raises(TlsError, match="not valid before"):
        check_identity(identity, lambda: now() - datetime.timedelta(days=30))
    other = identity_of_store(Store(path("client.pem"), None, "PEM"), None)
    with pytest.raises(TlsError, match="does not belong to the certificate CN=server"):
        check_identity(Identity(other.key, identity.certificates), now)
