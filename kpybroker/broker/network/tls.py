"""Kafka's `ssl.*` settings -> an `ssl.SSLContext`: the client's side.

Stores are PEM files (KIP-651) or PKCS12 (with the `cryptography` package). JKS, Java's own format, is not read;
`keytool` converts it. No revocation is checked here. Passwords never appear in an error.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

PEM, PKCS12 = "PEM", "PKCS12"
_TYPE_OF_SUFFIX = {".pem": PEM, ".p12": PKCS12, ".pfx": PKCS12, ".jks": "JKS"}

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


class TlsError(Exception):
    """Settings or stores that are not usable: the cause in one line, what fixes it in another."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Store:
    """A key store or trust store; `type` None: by the file's name."""

    location: str
    password: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """No trust store: the system's. No versions or suites: Python's own choice."""

    keystore: Store | None = None
    truststore: Store | None = None
    versions: Sequence[str] = ()
    cipher_suites: Sequence[str] = ()
    check_hostname: bool = True


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a TLS client. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.check_hostname
    _set_versions(context, settings.versions)
    _set_ciphers(context, settings.cipher_suites)
    if settings.truststore is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        with _reading(settings.truststore):
            context.load_verify_locations(cadata=_trusted(settings.truststore))
    if settings.keystore is not None:
        with _reading(settings.keystore):
            _load_keys(context, settings.keystore)
    return context


def _set_versions(context: ssl.SSLContext, names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown:
        raise TlsError(f"{', '.join(unknown)} is not a version of TLS", f"use some of {', '.join(_VERSIONS)}")
    if names:
        versions = [_VERSIONS[name] for name in names]
        context.minimum_version, context.maximum_version = min(versions), max(versions)


def _set_ciphers(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    # Those of TLS 1.3 have one name everywhere and are always on.
    older = [openssl_name(suite) for suite in suites if "_WITH_" in suite]
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError as error:
            raise TlsError(f"none of the cipher suites {', '.join(suites)} is known here", "name others") from error


def openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_CBC_", "_").replace("POLY1305_SHA256", "POLY1305")
    parts = ([] if exchange == "RSA" else [exchange]) + [cipher]
    return "-".join(parts).replace("_", "-")


@contextmanager
def _reading(store: Store) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise TlsError(
            f"the {_type(store)} store {store.location} cannot be read: {reason}",
            "correct its location, type and password",
        ) from error


def _type(store: Store) -> str:
    given = store.type.upper() if store.type else _TYPE_OF_SUFFIX.get(Path(store.location).suffix.lower(), "unknown")
    if given in (PEM, PKCS12):
        return given
    raise TlsError(
        f"the store {store.location} is of type {given}, which is not read here",
        f"convert it: keytool -importkeystore -srckeystore {store.location} -destkeystore store.p12 "
        "-deststoretype PKCS12",
    )


def _trusted(store: Store) -> str:
    """The certificates of a trust store, as PEM."""
    if _type(store) == PEM:
        return Path(store.location).read_text()
    return b"".join(_pkcs12_certificates(_pkcs12(store))).decode()


def _load_keys(context: ssl.SSLContext, store: Store) -> None:
    if _type(store) == PEM:
        # Without a password OpenSSL would ask at the terminal.
        context.load_cert_chain(store.location, password=store.password or "")
        return
    from cryptography.hazmat.primitives import serialization

    bundle = _pkcs12(store)
    if bundle.key is None:
        raise ValueError("no key")
    key = bundle.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # OpenSSL reads keys from files alone: one that only we may read, for this moment.
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(b"".join((key, *_pkcs12_certificates(bundle))))
        file.flush()
        context.load_cert_chain(file.name)


def _pkcs12(store: Store) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError as error:
        raise TlsError(
            f"the PKCS12 store {store.location} needs the package cryptography",
            "pip install 'kpybroker[security]', or give the store as PEM",
        ) from error
    return load_pkcs12(Path(store.location).read_bytes(), store.password.encode() if store.password else None)


def _pkcs12_certificates(bundle: PKCS12KeyAndCertificates) -> Iterator[bytes]:
    """Its own certificate first, then those of its issuers."""
    from cryptography.hazmat.primitives.serialization import Encoding

    held = ([bundle.cert] if bundle.cert is not None else []) + list(bundle.additional_certs)
    for one in held:
        yield one.certificate.public_bytes(Encoding.PEM)
