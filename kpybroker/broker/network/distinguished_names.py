"""The subject of a certificate as Java writes it: ``X500Principal.getName()``, which is RFC 2253.

Principals and ACLs are made of this text, so it has to be Java's to the letter: nine kinds of attributes have a
keyword, and all others are an OID with the encoded value in hexadecimal digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cryptography.x509 import NameAttribute

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_ENCODINGS: Final = {"BMPString": "utf-16-be", "UniversalString": "utf-32-be", "T61String": "latin-1"}


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate, for example `CN=alice,OU=billing,O=Example,C=DE`. Raises ValueError."""
    from cryptography.x509 import load_der_x509_certificate

    rdns = reversed(list(load_der_x509_certificate(certificate).subject.rdns))
    return ",".join("+".join(map(_attribute, rdn)) for rdn in rdns)


def _attribute(attribute: NameAttribute[Any]) -> str:
    oid = attribute.oid.dotted_string
    keyword = _KEYWORDS.get(oid)
    if keyword is None or isinstance(attribute.value, bytes):
        return f"{keyword or oid}=#{_der(attribute).hex()}"
    return f"{keyword}={_escaped(attribute.value)}"


def _escaped(text: str) -> str:
    escaped = "".join("\\00" if c == "\0" else f"\\{c}" if c in _ESCAPED else c for c in text)
    stripped = escaped.lstrip(" \r")
    leading = escaped[: len(escaped) - len(stripped)]
    kept = stripped.rstrip(" \r")
    trailing = stripped[len(kept) :]
    return "".join(f"\\{c}" for c in leading) + kept + "".join(f"\\{c}" for c in trailing)


def _der(attribute: NameAttribute[Any]) -> bytes:
    """Tag, length and value, as they are in the certificate."""
    kind = attribute._type
    value = attribute.value
    content = value if isinstance(value, bytes) else value.encode(_ENCODINGS.get(kind.name, "utf-8"))
    if kind.name == "BitString":
        content = b"\0" + content
    size = len(content)
    length = bytes((size,)) if size < 0x80 else _long_length(size)
    return bytes((kind.value,)) + length + content


def _long_length(size: int) -> bytes:
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((0x80 | len(digits),)) + digits
