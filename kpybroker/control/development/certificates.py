"""The certificates of brokers for development: an authority of its own, a broker that it signed, and a client.

They are files in one directory, which stay the same from start to start, so that a client's settings stay valid. They
are made again when one is about to expire, or when the broker has another name than they say.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kpybroker.system.private_files import take_directory

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, GeneralName, KeyUsage

CLIENT_NAME: Final = "alice"
VALID_DAYS: Final = 365
LEFT_DAYS_MIN: Final = 7


class TlsFiles(NamedTuple):
    """Paths: `broker` and `client` are PEM files with key and certificate."""

    authority: str
    broker: str
    client: str


def certificates(directory: Path, host: str) -> TlsFiles:
    """The files in the directory, made if need be. `host`: what `--host` says. Raises OSError.

    A directory that others made or may write to is refused: they would have the keys, or choose them.
    """
    take_directory(str(directory))
    files = files_in(directory)
    names = _names(host)
    if not _are_usable(files, names):
        _make(files, names)
    return files


def files_in(directory: Path) -> TlsFiles:
    """Where the files of a directory are, made or not."""
    return TlsFiles(*(str(directory / name) for name in ("ca.pem", "broker.pem", "client.pem")))


def _names(host: str) -> list[str]:
    """Everything that clients on this machine and near it may call the broker."""
    own = [host] if host not in ("", "0.0.0.0", "::") else []
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", socket.gethostname(), *own]))


def _are_usable(files: TlsFiles, names: Sequence[str]) -> bool:
    from cryptography.x509 import ExtensionNotFound, KeyUsage, SubjectAlternativeName, load_pem_x509_certificate

    limit = datetime.now(UTC) + timedelta(days=LEFT_DAYS_MIN)
    try:
        found = [load_pem_x509_certificate(Path(file).read_bytes()) for file in files]
        found[0].extensions.get_extension_for_class(KeyUsage)  # which Python 3.13 wants of an authority
        shown = found[1].extensions.get_extension_for_class(SubjectAlternativeName).value
    except (OSError, ValueError, ExtensionNotFound):
        return False
    has_names = {str(name.value) for name in shown} >= set(names)
    return has_names and all(one.not_valid_after_utc > limit for one in found)


def _make(files: TlsFiles, names: Sequence[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key = ec.generate_private_key(ec.SECP256R1())
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    authority = _certificate("kpybroker dev", authority_key, None, authority_key, constraints)
    _write(files.authority, authority)
    alternative = x509.SubjectAlternativeName([_general_name(name) for name in names])
    for path, name, extension in (
        (files.broker, "broker", alternative),
        (files.client, CLIENT_NAME, x509.BasicConstraints(ca=False, path_length=None)),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        _write(path, _certificate(name, key, authority, authority_key, extension), key)


def _general_name(name: str) -> GeneralName:
    from cryptography.x509 import DNSName, IPAddress

    try:
        return IPAddress(ip_address(name))
    except ValueError:
        return DNSName(name)


def _certificate(name: str, key: Any, issuer: Certificate | None, issuer_key: Any, extension: Any) -> Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(extension, critical=issuer is None)
        .add_extension(_key_usage(is_authority=issuer is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is not None:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
        builder = builder.add_extension(identifier, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _key_usage(is_authority: bool) -> KeyUsage:
    from cryptography.x509 import KeyUsage

    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only")
    return KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        decipher_only=False,
        **dict.fromkeys(unused, False),
    )


def _write(path: str, certificate: Certificate, key: Any = None) -> None:
    """A key is readable for this user only."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    data = certificate.public_bytes(Encoding.PEM)
    if key is not None:
        data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + data
    Path(path).unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if key is not None else 0o644), "wb") as file:
        file.write(data)
