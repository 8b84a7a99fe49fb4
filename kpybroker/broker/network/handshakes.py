"""What a server needs of TLS: handshakes, and why one failed, in the words of the one who reads the log.

Nothing here needs OpenSSL, so that a broker without TLS imports none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ssl

    from kpybroker.broker.network.transport import Stream
    from kpybroker.core.authorizer import Principal


class Tls(Protocol):
    """What encrypts the connections of a listener (`security.stores.ListenerTls`)."""

    def wrap(self, stream: Stream) -> Stream:
        """The encrypted stream above an accepted one."""

    async def shake_hands(self, stream: Stream) -> Principal | None:
        """Complete the handshake of a stream of `wrap` within its limits: who the client's certificate names, if it
        names one. Raises HandshakeFailed, ProtocolError, OSError.
        """


class HandshakeFailed(Exception):
    """Why there is no TLS connection: a sentence for the log, with what to do where that is known."""


_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, and ssl.client.auth=required: set the "
    "client's key store (librdkafka: ssl.certificate.location and ssl.key.location)",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the issuer of this broker's certificate: add it to the "
    "client's trust store (librdkafka: ssl.ca.location)",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept this broker's certificate: check the client's trust "
    "store, and that the certificate names the host that the client connects to",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept this broker's certificate: check the client's trust "
    "store, and that the certificate names the host that the client connects to",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "this broker's certificate has expired for the client: renew it",
    "UNSUPPORTED_PROTOCOL": "the client offers only versions of TLS that are not in ssl.enabled.protocols",
    "VERSION_TOO_LOW": "the client offers only versions of TLS that are not in ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "the client offers no cipher suite that is enabled here (ssl.cipher.suites, and those that "
    "fit the key of the certificate)",
}


def reason_of(error: ssl.SSLError) -> str:
    """What an error of OpenSSL means for the one who reads the log."""
    refused = getattr(error, "verify_message", "")  # of SSLCertVerificationError
    if refused:
        return f"the peer's certificate is not accepted: {refused.strip().rstrip('.')}"
    known = _REASONS.get(str(error.reason))
    return known or f"{error.reason or 'unknown error'} ({error.library or 'SSL'})"
