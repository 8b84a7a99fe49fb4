"""Key stores and trust stores of listeners -> certificates and keys, with every mistake as a `TlsError`.

PEM as in KIP-651 (files, and values inside the configuration, where spaces may stand for line ends), and PKCS12. A
PKCS12 file may be called JKS: since Java 9 keytool writes PKCS12 whatever a file is called, and Java reads it as JKS
too. Java's own formats (JKS, JCEKS) are refused with the command that converts them: the package that reads them has
had no release since 2020. Passwords and keys are in no error and no repr.

All of this needs the package cryptography.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kpybroker.broker.network.tls_settings import PEM, PKCS12, Store, TlsError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

KEY_STORE, TRUST_STORE = "key store", "trust store"
_PREFIX: Final = {KEY_STORE: "ssl.keystore", TRUST_STORE: "ssl.truststore"}
_JAVA_FORMATS: Final = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
_BLOCK: Final = re.compile(r"-+BEGIN\s+([A-Z0-9 ]+?)-+\s+(.+?)-+END\s+[A-Z0-9 ]+-+", re.DOTALL)
_LINE_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key as unencrypted PEM, and its certificates: its own first, then those of its issuers."""

    key: bytes = field(repr=False)
    certificates: Sequence[Certificate]

    @property
    def pem(self) -> bytes:
        """Key and certificates, as OpenSSL reads them."""
        return b"".join((self.key, *map(_pem_of, self.certificates)))


def identity_of_store(store: Store, key_password: str | None) -> Identity:
    """The key and certificates of a key store. `key_password`: `ssl.key.password`. Raises TlsError."""
    data, kind = _read(store, KEY_STORE)
    if kind == PEM:
        return identity_of_pem(data.decode(errors="replace"), None, key_password, f"the key store {store.location}")
    _same_password(store, key_password)
    bundle = _pkcs12(data, store, KEY_STORE)
    if bundle.key is None or bundle.cert is None:
        raise TlsError(
            f"the key store {store.location} holds no private key with its certificate",
            "name a store with the broker's key in ssl.keystore.location; certificates to trust are for "
            "ssl.truststore.location",
        )
    return Identity(_key_pem(bundle.key), (bundle.cert.certificate, *(c.certificate for c in bundle.additional_certs)))


def identity_of_pem(chain: str, key: str | None, key_password: str | None, name: str) -> Identity:
    """The identity in PEM text; without `key` the key is in `chain` too. `name` is for errors. Raises TlsError."""
    certificates = _certificates(chain, name)
    keys = [block for block in _blocks(chain if key is None else key) if block.kind.endswith("PRIVATE KEY")]
    if not keys:
        raise TlsError(f"{name} holds no private key", "add it as PKCS#8: -----BEGIN PRIVATE KEY----- ...")
    return Identity(_key_pem(_load_key(keys[0], key_password, name)), certificates)


def trusted_of_store(store: Store) -> Sequence[Certificate]:
    """The certificates of a trust store; at least one. Raises TlsError."""
    data, kind = _read(store, TRUST_STORE)
    if kind == PEM:
        return _certificates(data.decode(errors="replace"), f"the trust store {store.location}")
    bundle = _pkcs12(data, store, TRUST_STORE)
    found = [one.certificate for one in bundle.additional_certs]
    if bundle.cert is not None:
        found.insert(0, bundle.cert.certificate)
    if not found:
        raise TlsError(
            f"the trust store {store.location} holds no certificate",
            "import the certificates to trust: keytool -importcert -alias ca -file ca.pem -keystore "
            f"{store.location} -storetype PKCS12",
        )
    return found


def trusted_of_pem(text: str, name: str) -> Sequence[Certificate]:
    """The certificates in PEM text; at least one. Raises TlsError."""
    return _certificates(text, name)


def trusted_pem(certificates: Sequence[Certificate]) -> str:
    """As OpenSSL reads them."""
    return b"".join(map(_pem_of, certificates)).decode()


# --- files


def _read(store: Store, role: str) -> tuple[bytes, str]:
    """(the bytes, PEM or PKCS12)."""
    try:
        data = Path(store.location).read_bytes()
    except OSError as error:
        raise TlsError(
            f"the {role} {store.location} cannot be read: {error.strerror or error}",
            f"correct {_PREFIX[role]}.location",
        ) from error
    given = (store.type or "JKS").upper()
    java_format = _JAVA_FORMATS.get(data[:4])
    if java_format:
        raise TlsError(
            f"the {role} {store.location} is in Java's own format {java_format}, which is not read here",
            f"convert it: keytool -importkeystore -srckeystore {store.location} -destkeystore store.p12 "
            f"-deststoretype PKCS12; then set {_PREFIX[role]}.location=store.p12 and {_PREFIX[role]}.type=PKCS12",
        )
    if given not in (PEM, PKCS12, "JKS"):
        raise TlsError(f"the {role} {store.location} is of type {given}", f"set {_PREFIX[role]}.type=PEM or PKCS12")
    is_der = data[:1] == b"\x30"
    if is_der != (given != PEM):
        fits = PKCS12 if is_der else PEM
        if is_der or b"-----BEGIN" in data:
            cause = f"the {role} {store.location} is of type {given}, but the file is {fits}"
            raise TlsError(cause, f"set {_PREFIX[role]}.type={fits}")
        raise TlsError(
            f"the {role} {store.location} is neither PEM nor PKCS12", f"correct {_PREFIX[role]}.location and .type"
        )
    return data, PEM if given == PEM else PKCS12


def _same_password(store: Store, key_password: str | None) -> None:
    if key_password is not None and store.password is not None and key_password != store.password:
        raise TlsError(
            f"ssl.key.password is not ssl.keystore.password, but the PKCS12 store {store.location} has one password",
            "leave ssl.key.password out",
        )


def _pkcs12(data: bytes, store: Store, role: str) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        return load_pkcs12(data, store.password.encode() if store.password else None)
    except (ValueError, TypeError) as error:
        raise TlsError(
            f"the PKCS12 {role} {store.location} cannot be opened: its password is wrong, or the file is damaged",
            f"correct {_PREFIX[role]}.password; keytool -list -keystore {store.location} asks for the same one",
        ) from error


# --- PEM


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    body: str = field(repr=False)

    @property
    def pem(self) -> bytes:
        """With line ends where they belong, wherever the configuration had them."""
        text = "".join(self.body.split())
        lines = [text[at : at + _LINE_CHARACTERS] for at in range(0, len(text), _LINE_CHARACTERS)]
        return "\n".join((f"-----BEGIN {self.kind}-----", *lines, f"-----END {self.kind}-----", "")).encode()


def _blocks(text: str) -> Iterator[_Block]:
    for match in _BLOCK.finditer(text):
        yield _Block(" ".join(match.group(1).split()), match.group(2))


def _certificates(text: str, name: str) -> Sequence[Certificate]:
    from cryptography.x509 import load_pem_x509_certificate

    blocks = [block for block in _blocks(text) if block.kind.endswith("CERTIFICATE")]
    if not blocks:
        raise TlsError(f"{name} holds no certificate", "add it as PEM: -----BEGIN CERTIFICATE----- ...")
    try:
        return tuple(load_pem_x509_certificate(block.pem) for block in blocks)
    except ValueError as error:
        raise TlsError(f"{name} holds a certificate that cannot be read", "copy the whole PEM text of it") from error


def _load_key(block: _Block, password: str | None, name: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if block.kind.startswith(("RSA ", "EC ", "DSA ")) and "," in block.body:
        raise TlsError(
            f"the private key of {name} is encrypted in OpenSSL's old format",
            "convert it to PKCS#8: openssl pkcs8 -topk8 -in old.pem -out key.pem",
        )
    is_encrypted = block.kind.startswith("ENCRYPTED")
    if is_encrypted and password is None:
        raise TlsError(f"the private key of {name} is encrypted", "set ssl.key.password")
    try:
        return load_pem_private_key(block.pem, password.encode() if is_encrypted and password else None)
    except (ValueError, TypeError) as error:
        cause = "cannot be opened: ssl.key.password is wrong" if is_encrypted else "cannot be read"
        fix = "correct ssl.key.password" if is_encrypted else "copy the whole PEM text of it, as PKCS#8"
        raise TlsError(f"the private key of {name} {cause}", fix) from error


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    made: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made


def _pem_of(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


@contextmanager
def needing_cryptography(subject: str) -> Iterator[None]:
    """Where cryptography is missing, a TlsError that says how to install it."""
    try:
        import cryptography  # noqa: F401

        yield
    except ModuleNotFoundError as error:
        raise TlsError(f"{subject} needs the package cryptography", "pip install 'kpybroker[security]'") from error


# --- checks


def check_identity(identity: Identity, now: Callable[[], Any]) -> None:
    """Raises TlsError unless the key belongs to the certificate, and the certificate is valid now (UTC, aware)."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    certificate = identity.certificates[0]
    subject = certificate.subject.rfc4514_string() or "without a subject"
    own = load_pem_private_key(identity.key, None).public_key()
    spki = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if own.public_bytes(*spki) != certificate.public_key().public_bytes(*spki):
        raise TlsError(
            f"the private key does not belong to the certificate {subject}, the first one in the key store",
            "put the broker's own certificate first, and its key with it",
        )
    moment = now()
    if moment > certificate.not_valid_after_utc:
        raise TlsError(
            f"the certificate {subject} expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
            "renew it, and replace it in the key store",
        )
    if moment < certificate.not_valid_before_utc:
        raise TlsError(
            f"the certificate {subject} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC",
            "check this machine's clock, or wait",
        )
