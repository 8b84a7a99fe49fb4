"""librdkafka's TLS keys as a context."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kpybroker.client.connect import tls
from kpybroker.client.connect.errors import CommandError
from tests.support.network.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


def test_certificates_are_read_from_files_or_inline(authority: Authority) -> None:
    pem, _ = authority.issue("inline")
    text = pem.read_text()
    made = tls.context(
        {"ssl.ca.pem": authority.certificate.read_text(), "ssl.certificate.pem": text, "ssl.key.pem": text}
    )
    assert (made.verify_mode, made.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert any(certificate["subject"][0][0][1] == "authority" for certificate in made.get_ca_certs())
    files = {"ssl.ca.location": str(authority.certificate), "ssl.certificate.location": str(pem)}
    assert tls.context({**files, "ssl.key.location": str(pem)}).get_ca_certs()


def test_verification_is_turned_off_only_when_asked() -> None:
    assert not tls.context({"ssl.endpoint.identification.algorithm": "none"}).check_hostname
    off = tls.context({"enable.ssl.certificate.verification": "false"})
    assert (off.verify_mode, off.check_hostname) == (ssl.CERT_NONE, False)


def test_what_cannot_be_read_is_named(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be used"):
        tls.context({"ssl.ca.location": str(tmp_path / "none")})
    _, p12 = authority.issue("store")
    with pytest.raises(CommandError, match="PKCS12") as caught:
        tls.context({"ssl.keystore.location": str(p12)})
    assert f"openssl pkcs12 -in {p12}" in caught.value.fix


def test_protocols_that_are_encrypted() -> None:
    assert [tls.is_tls(p) for p in ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")] == [False, False, True, True]


def test_a_certificate_needs_no_more_than_other_clients_want(authority: Authority) -> None:
    """Python 3.13 wants the extensions of RFC 5280 by default."""
    made = tls.context({"ssl.ca.location": str(authority.certificate)})
    assert not made.verify_flags & ssl.VERIFY_X509_STRICT
