"""Subjects as Java writes them; compat_tests/security/tls/test_tls_rules.py asks Java itself."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kpybroker.broker.network.distinguished_names import subject_of

KEY = ec.generate_private_key(ec.SECP256R1())
DAY = datetime.datetime(2026, 1, 1)


def certificate(*rdns: list[tuple[x509.ObjectIdentifier, str]]) -> bytes:
    """DER of a certificate with this subject."""
    name = x509.Name(
        x509.RelativeDistinguishedName(x509.NameAttribute(oid, value) for oid, value in rdn) for rdn in rdns
    )
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(DAY).not_valid_after(DAY + datetime.timedelta(days=1))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


COMMON = NameOID.COMMON_NAME


@pytest.mark.parametrize(
    ("rdns", "expected"),
    [
        (
            [[(NameOID.COUNTRY_NAME, "DE")], [(NameOID.ORGANIZATION_NAME, "Ex")], [(COMMON, "alice")]],
            "CN=alice,O=Ex,C=DE",
        ),
        ([[(COMMON, "a"), (NameOID.USER_ID, "u")]], "CN=a+UID=u"),
        ([[(COMMON, 'a,b=c+d<e>f#g;h"i\\j')]], 'CN=a\\,b\\=c\\+d\\<e\\>f\\#g\\;h\\"i\\\\j'),
        ([[(COMMON, "  two ")]], "CN=\\ \\ two\\ "),
        ([[(COMMON, "Grün")]], "CN=Grün"),
        ([[(NameOID.EMAIL_ADDRESS, "a@b")], [(COMMON, "x")]], "CN=x,1.2.840.113549.1.9.1=#1603614062"),
        ([[(NameOID.SERIAL_NUMBER, "7")]], "2.5.4.5=#130137"),
        ([[(NameOID.EMAIL_ADDRESS, "a" * 200)]], "1.2.840.113549.1.9.1=#1681c8" + "61" * 200),
    ],
)
def test_the_subject_is_written_as_java_writes_it(
    rdns: list[list[tuple[x509.ObjectIdentifier, str]]], expected: str
) -> None:
    assert subject_of(certificate(*rdns)) == expected


def test_what_is_not_a_certificate_is_a_value_error() -> None:
    with pytest.raises(ValueError):
        subject_of(b"\x30\x03\x02\x01\x01")
