"""librdkafka's TLS keys as an `ssl.SSLContext`, for the requests that do not go through librdkafka."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from kpybroker.client.connect.errors import usage


def is_tls(protocol: str) -> bool:
    """Whether this security protocol is encrypted."""
    return protocol.endswith("SSL")


def context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """A client's context: certificates to trust, its own certificate, verification. Raises CommandError."""
    try:
        made = ssl.create_default_context(
            cafile=properties.get("ssl.ca.location"), cadata=properties.get("ssl.ca.pem") or None
        )
        # Python 3.13 is strict about RFC 5280 by default. Neither librdkafka nor Java is, and a CA of one's own rarely.
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT
        _own_certificate(made, properties)
    except (OSError, ssl.SSLError) as error:
        raise usage(
            f"the certificates cannot be used: {error.strerror or error}",
            "check ssl.ca.location, ssl.certificate.location, ssl.key.location and ssl.key.password",
        ) from None
    if properties.get("ssl.endpoint.identification.algorithm", "https") == "none":
        made.check_hostname = False
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made


def unverified() -> ssl.SSLContext:
    """A context that accepts every certificate, to look at what a port speaks."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def _own_certificate(made: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    if "ssl.keystore.location" in properties:
        raise usage(
            "this command reads a client's certificate as PEM, and ssl.keystore.location is PKCS12",
            f"openssl pkcs12 -in {properties['ssl.keystore.location']} -out client.pem -nodes; then set "
            "ssl.keystore.location=client.pem",
        )
    password = properties.get("ssl.key.password")
    with ExitStack() as stack:
        certificate = _file(stack, properties, "ssl.certificate")
        key = _file(stack, properties, "ssl.key")
        if certificate is not None:
            made.load_cert_chain(certificate, key, password)


def _file(stack: ExitStack, properties: Mapping[str, str], key: str) -> str | None:
    """The path of a PEM file; inline PEM goes through a file of this user's, which is removed at once."""
    if f"{key}.location" in properties:
        return properties[f"{key}.location"]
    text = properties.get(f"{key}.pem")
    if text is None:
        return None
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="kpybroker-"))
    path = Path(directory) / "inline.pem"
    path.write_text(text, encoding="utf-8")
    return str(path)
