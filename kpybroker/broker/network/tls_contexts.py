"""OpenSSL contexts of listeners, and of the connections between brokers, from stores that have been read.

TLS 1.2 and 1.3, no renegotiation, no compression. What Python's ssl module cannot do is refused, so that a setting is
never weaker than it looks: TLS 1.3 has three suites, which cannot be enabled one by one.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kpybroker.broker.network.tls_settings import TlsError, openssl_name
from kpybroker.broker.network.tls_stores import Identity, trusted_pem
from kpybroker.system.private_files import private_file

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
TLS_1_3_SUITES: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Versions and suites in Kafka's names; no suites: OpenSSL's own choice."""

    versions: Sequence[str]
    cipher_suites: Sequence[str] = ()


def listener_context(
    identity: Identity, trusted: Sequence[Certificate] | None, options: TlsOptions, client_auth: str
) -> ssl.SSLContext:
    """The context of a listener. `trusted` None: the system's authorities, as in Java. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, options)
    _load(context, identity)
    # A client that resumes a session shows no certificate again. Connections of Kafka's clients are long, so that full
    # handshakes cost little; of TLS 1.2 tickets remain, because without them OpenSSL keeps the sessions in memory.
    context.num_tickets = 0
    context.verify_mode = CLIENT_AUTH[client_auth]
    if context.verify_mode != ssl.CERT_NONE:
        _trust(context, trusted, ssl.Purpose.CLIENT_AUTH)
    return context


def peer_context(
    identity: Identity | None, trusted: Sequence[Certificate] | None, options: TlsOptions, check_hostname: bool
) -> ssl.SSLContext:
    """The context of connections to other brokers. Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_hostname
    _restrict(context, options)
    if identity is not None:
        _load(context, identity)
    _trust(context, trusted, ssl.Purpose.SERVER_AUTH)
    return context


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    try:
        with private_file(identity.pem) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise TlsError(
            f"OpenSSL refuses the key store: {error.reason or error}",
            "use a key of at least 2048 bits (RSA) or 224 bits (EC), and a certificate signed with SHA-256 or better",
        ) from error


def _trust(context: ssl.SSLContext, trusted: Sequence[Certificate] | None, purpose: ssl.Purpose) -> None:
    if trusted is None:
        context.load_default_certs(purpose)
        return
    # Java trusts what is in the store itself, no matter who signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=trusted_pem(trusted))


def _restrict(context: ssl.SSLContext, options: TlsOptions) -> None:
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    refused = [name for name in options.versions if name not in VERSIONS]
    if refused or not options.versions:
        raise TlsError(
            f"ssl.enabled.protocols has {', '.join(refused) or 'no version'}: TLS 1.2 and 1.3 are available",
            "set ssl.enabled.protocols=TLSv1.2,TLSv1.3",
        )
    versions = {VERSIONS[name] for name in options.versions}
    if options.cipher_suites:
        versions &= _choose_suites(context, options.cipher_suites)
    if not versions:
        raise TlsError(
            f"ssl.cipher.suites has no suite of {', '.join(options.versions)}", "leave ssl.cipher.suites out"
        )
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _choose_suites(context: ssl.SSLContext, suites: Sequence[str]) -> set[ssl.TLSVersion]:
    """The versions that these suites leave."""
    newer = TLS_1_3_SUITES.intersection(suites)
    older = [suite for suite in suites if suite not in newer]
    if newer and newer != TLS_1_3_SUITES:
        raise TlsError(
            f"ssl.cipher.suites has {len(newer)} of the {len(TLS_1_3_SUITES)} suites of TLS 1.3, which can only be "
            "enabled together",
            f"name all of {', '.join(sorted(TLS_1_3_SUITES))}, or none and set ssl.enabled.protocols=TLSv1.2",
        )
    for suite in older:
        try:
            context.set_ciphers(openssl_name(suite))
        except ssl.SSLError as error:
            raise TlsError(f"ssl.cipher.suites: OpenSSL has no suite {suite}", "leave it out") from error
    if older:
        context.set_ciphers(":".join(map(openssl_name, older)))
    return ({ssl.TLSVersion.TLSv1_3} if newer else set()) | ({ssl.TLSVersion.TLSv1_2} if older else set())
