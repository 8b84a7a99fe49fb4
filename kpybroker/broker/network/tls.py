"""Kafka's `zookeeper.ssl.*` settings -> the `ssl.SSLContext` of the connection to ZooKeeper.

Unlike listeners (`tls_contexts`), it takes the older versions of TLS that a ZooKeeper may need, and its PEM stores are
read by OpenSSL, so that they need no further package. PKCS12 needs `cryptography`. JKS, Java's own format, is not read;
`keytool` converts it. No revocation is checked here. Passwords never appear in an error.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kpybroker.broker.network.tls_settings import PEM, PKCS12, Store, TlsError, openssl_name
from kpybroker.broker.network.tls_stores import identity_of_store, needing_cryptography, trusted_of_store, trusted_pem
from kpybroker.system.private_files import private_file

_TYPE_OF_SUFFIX = {".pem": PEM, ".p12": PKCS12, ".pfx": PKCS12, ".jks": "JKS"}

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


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
    with _opening_pkcs12(store):
        return trusted_pem(trusted_of_store(store))


def _load_keys(context: ssl.SSLContext, store: Store) -> None:
    if _type(store) == PEM:
        # Without a password OpenSSL would ask at the terminal.
        context.load_cert_chain(store.location, password=store.password or "")
        return
    with _opening_pkcs12(store), private_file(identity_of_store(store, None).pem) as path:
        context.load_cert_chain(path)


@contextmanager
def _opening_pkcs12(store: Store) -> Iterator[None]:
    """The fixes of `tls_stores` name the keys of listeners, which ZooKeeper's are not."""
    with needing_cryptography(f"the PKCS12 store {store.location}"):
        try:
            yield
        except TlsError as error:
            raise TlsError(error.cause, "correct its location, type and password") from error
