"""TLS of a listener, and of the connections between brokers, from `ssl.*` keys; read again when those change.

Each key may be set for one listener (`listener.name.<listener>.ssl...`), which takes precedence over the plain key.
What is wrong with a store, at the start or in a dynamic change, is a `TlsError` with its cause and fix; after a failed
change the old stores keep serving. A store whose file has changed is read again at the next change of the broker's
configuration, also at one that sets what is set already, as in Kafka.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.broker.network.distinguished_names import subject_of
from kpybroker.broker.network.handshakes import HandshakeFailed
from kpybroker.broker.network.tls_contexts import TlsOptions, listener_context, peer_context
from kpybroker.broker.network.tls_settings import PEM, Store, TlsError
from kpybroker.broker.network.tls_stores import (
    Identity,
    check_identity,
    identity_of_pem,
    identity_of_store,
    needing_cryptography,
    trusted_of_pem,
    trusted_of_store,
)
from kpybroker.broker.network.tls_stream import TlsStream, new_scratch
from kpybroker.config.jaas import listener_key
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.principal_rules import PrincipalRule, RuleError, parse_rules, principal_name

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from kpybroker.broker.network.transport import Stream
    from kpybroker.config.broker import BrokerConfig

logger = logging.getLogger("kafka.network.SocketServer")

HANDSHAKE_S_MAX: Final = 10.0
"""A client that has not completed the TLS handshake by then is disconnected."""
CLIENT_AUTH_KEY: Final = "ssl.client.auth"
RULES_KEY: Final = "ssl.principal.mapping.rules"
PREFIX: Final = "ssl."

Now = Callable[[], datetime]


def utc_now() -> datetime:
    """What certificates are checked against."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Stores:
    """What was read: `trusted` None means the system's authorities. `files`: (path, time, size) of each file."""

    identity: Identity | None
    trusted: Sequence[Certificate] | None
    files: tuple[tuple[str, int, int], ...] = ()


class Settings:
    """The `ssl.*` keys as one listener sees them."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._config = config
        self.listener = listener

    def text(self, key: str) -> str:
        """The value for this listener; "" where there is none."""
        return self._config.get_str(listener_key(self.listener, key))

    def items(self, key: str) -> Sequence[str]:
        """The items of a list."""
        return self._config.get_list(listener_key(self.listener, key))

    def flag(self, key: str) -> bool:
        """The value of a BOOLEAN key."""
        return self._config.get_bool(listener_key(self.listener, key))

    @property
    def client_auth(self) -> str:
        """none, requested or required. On SASL_SSL only the listener's own key counts (KIP-684)."""
        if self._config.security_protocols[self.listener] == "SASL_SSL":
            return self._config.effective.get(listener_key(self.listener, CLIENT_AUTH_KEY), "none").strip()
        return self.text(CLIENT_AUTH_KEY)

    @property
    def options(self) -> TlsOptions:
        """Versions and suites."""
        return TlsOptions(self.items("ssl.enabled.protocols"), self.items("ssl.cipher.suites"))

    @property
    def checks_hostname(self) -> bool:
        """Whether the certificate of another broker must name its host."""
        return self.text("ssl.endpoint.identification.algorithm").lower() == "https"

    def rules(self) -> Sequence[PrincipalRule]:
        """Raises TlsError."""
        text = self.text(RULES_KEY)
        try:
            return parse_rules(text)
        except RuleError as error:
            raise TlsError(
                f"{RULES_KEY}: {error}", f"write {RULES_KEY}=RULE:^CN=([^,]+).*$/$1/,DEFAULT, for example"
            ) from error

    def read(self) -> Stores:
        """Read the stores. Raises TlsError."""
        with needing_cryptography("TLS"):
            files = self.files()
            return Stores(self._identity(), self._trusted(), files)

    def files(self) -> tuple[tuple[str, int, int], ...]:
        """What would change if one of the files were replaced; a file that is missing is left out."""
        found = []
        for path in filter(None, (self.text("ssl.keystore.location"), self.text("ssl.truststore.location"))):
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.append((path, status.st_mtime_ns, status.st_size))
        return tuple(found)

    def _identity(self) -> Identity | None:
        location, key_password = self.text("ssl.keystore.location"), self.text("ssl.key.password") or None
        chain, key = self.text("ssl.keystore.certificate.chain"), self.text("ssl.keystore.key")
        if location and (chain or key):
            raise TlsError(
                "ssl.keystore.location is set, and so is a key or certificate inside the configuration",
                "leave out ssl.keystore.location, or ssl.keystore.key and ssl.keystore.certificate.chain",
            )
        if location:
            password, kind = self.text("ssl.keystore.password") or None, self.text("ssl.keystore.type")
            if kind.upper() == PEM and password is not None:
                raise TlsError("ssl.keystore.password is set, but a PEM file has none", "use ssl.key.password")
            return identity_of_store(Store(location, password, kind), key_password)
        if not chain and not key:
            return None
        missing = next((name for name, text in (("key", key), ("certificate.chain", chain)) if not text), None)
        if missing:
            raise TlsError(f"ssl.keystore.{missing} is missing", f"set ssl.keystore.{missing} to PEM text")
        self._require_pem("ssl.keystore.type", "ssl.keystore.certificate.chain")
        return identity_of_pem(chain, key, key_password, "ssl.keystore.key with ssl.keystore.certificate.chain")

    def _trusted(self) -> Sequence[Certificate] | None:
        location, inline = self.text("ssl.truststore.location"), self.text("ssl.truststore.certificates")
        if location and inline:
            raise TlsError(
                "ssl.truststore.location and ssl.truststore.certificates are both set", "leave one of them out"
            )
        if location:
            password, kind = self.text("ssl.truststore.password") or None, self.text("ssl.truststore.type")
            if kind.upper() == PEM and password is not None:
                raise TlsError("ssl.truststore.password is set, but a PEM file has none", "leave it out")
            return trusted_of_store(Store(location, password, kind))
        if not inline:
            return None
        self._require_pem("ssl.truststore.type", "ssl.truststore.certificates")
        return trusted_of_pem(inline, "ssl.truststore.certificates")

    def _require_pem(self, type_key: str, key: str) -> None:
        if (kind := self.text(type_key)).upper() != PEM:
            raise TlsError(f"{key} is set, but {type_key} is {kind}", f"set {type_key}={PEM}")


def required_identity(stores: Stores) -> Identity:
    """The identity of a listener. Raises TlsError where it has none."""
    if stores.identity is None:
        raise TlsError(
            "there is no key store: clients would not know whom they talk to",
            "set ssl.keystore.location with ssl.keystore.type=PEM or PKCS12, and ssl.keystore.password; "
            "to try it out: kpybroker dev --tls makes its own",
        )
    return stores.identity


class ListenerTls:
    """TLS of one listener: wraps what it accepts, and names the principals. The constructor raises TlsError."""

    def __init__(self, config: BrokerConfig, listener: str, now: Now = utc_now) -> None:
        self._settings = Settings(config, listener)
        self._gives_principals = config.security_protocols[listener] == "SSL"
        self._now = now
        self._scratch = new_scratch()
        self._slot = trio.Lock()
        self._rules = self._settings.rules()
        self._stores = self._settings.read()
        self._context = self._make(self._settings, self._stores)
        self.handshakes_total = 0

    @property
    def listener(self) -> str:
        """The name of the listener, in upper case."""
        return self._settings.listener

    def _make(self, settings: Settings, stores: Stores) -> ssl.SSLContext:
        identity = required_identity(stores)
        check_identity(identity, self._now)
        return listener_context(identity, stores.trusted, settings.options, settings.client_auth)

    # --- connections

    def wrap(self, stream: Stream) -> TlsStream:
        """The encrypted stream above an accepted one; nothing is sent yet."""
        return TlsStream(stream, self._context, self._scratch)

    async def shake_hands(self, stream: Stream) -> Principal | None:
        """Complete the handshake; the principal of a client that shows a certificate, where those name principals.

        Raises HandshakeFailed, OtherProtocolError, OSError.
        """
        assert isinstance(stream, TlsStream)
        with trio.move_on_after(HANDSHAKE_S_MAX) as scope:
            await stream.handshake(self._slot)
        if scope.cancelled_caught:
            raise HandshakeFailed(f"the client has not completed the TLS handshake within {HANDSHAKE_S_MAX:g} s")
        self.handshakes_total += 1
        certificate = stream.peer_certificate
        return self._principal(certificate) if certificate is not None and self._gives_principals else None

    def _principal(self, certificate: bytes) -> Principal:
        try:
            subject = subject_of(certificate)
        except ValueError as error:
            raise HandshakeFailed("the subject of the client's certificate cannot be read") from error
        name = principal_name(self._rules, subject)
        if name is None:
            raise HandshakeFailed(f"no rule of {RULES_KEY} applies to {subject!a}: end the rules with DEFAULT")
        return Principal("User", name)

    # --- changes

    def check(self, config: BrokerConfig) -> None:
        """Raises TlsError unless the listener could serve with that configuration."""
        settings = Settings(config, self.listener)
        stores = settings.read()
        self._make(settings, stores)
        check_same_names(self._stores, stores, settings)

    def refresh(self, changed: frozenset[str] = frozenset()) -> None:
        """Read the stores again if a key of TLS is among `changed`, or a file has changed; a failure is logged."""
        prefix = listener_key(self.listener, PREFIX)
        is_named = any(name.startswith((prefix, PREFIX)) for name in changed)
        if not is_named and self._settings.files() == self._stores.files:
            return
        try:
            stores = self._settings.read()
            context = self._make(self._settings, stores)
            check_same_names(self._stores, stores, self._settings)
        except TlsError as error:
            logger.error("Listener %s keeps its old TLS settings: %s; fix: %s", self.listener, error.cause, error.fix)
            return
        self._stores, self._context = stores, context
        logger.info("Listener %s has new TLS settings: connections from now on use them", self.listener)


def check_same_names(old: Stores, new: Stores, settings: Settings) -> None:
    """Kafka's ``CertificateEntries.ensureCompatible``: clients must still find the names that they know.

    Raises TlsError for another subject without `ssl.allow.dn.changes`, and for alternative names that are missing
    without `ssl.allow.san.changes`.
    """
    before, after = required_identity(old).certificates[0], required_identity(new).certificates[0]
    if before.subject != after.subject and not settings.flag("ssl.allow.dn.changes"):
        raise TlsError(
            "Keystore DistinguishedName does not match: existing="
            f"{before.subject.rfc4514_string()}, new={after.subject.rfc4514_string()}",
            "use a certificate with the same subject, or set ssl.allow.dn.changes=true",
        )
    missing = alternative_names(before) - alternative_names(after)
    if missing and not settings.flag("ssl.allow.san.changes"):
        raise TlsError(
            f"Keystore SubjectAltNames do not match: the new certificate lacks {', '.join(sorted(missing))}",
            "use a certificate that has all names of the old one, or set ssl.allow.san.changes=true",
        )


def alternative_names(certificate: Certificate) -> set[str]:
    """The names that a certificate has next to its subject."""
    from cryptography.x509 import ExtensionNotFound, SubjectAlternativeName

    try:
        found = certificate.extensions.get_extension_for_class(SubjectAlternativeName)
    except ExtensionNotFound:
        return set()
    return {str(name.value) for name in found.value}


class PeerTls:
    """TLS towards other brokers on one listener: `secure` what `Transport.connect` made."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._settings = Settings(config, listener)
        self._scratch = new_scratch()
        self._slot = trio.Lock()
        self._context = self._make(self._settings)
        self._stores_files = self._settings.files()

    @staticmethod
    def _make(settings: Settings) -> ssl.SSLContext:
        stores = settings.read()
        return peer_context(stores.identity, stores.trusted, settings.options, settings.checks_hostname)

    async def secure(self, stream: Stream, host: str, timeout_s: float) -> Stream:
        """The encrypted stream, after the handshake. Raises OSError, also after `timeout_s`; the stream is closed."""
        secured = TlsStream(stream, self._context, self._scratch, server_name=host)
        try:
            with trio.fail_after(timeout_s):
                await secured.handshake(self._slot)
        except BaseException as error:
            stream.close()
            if isinstance(error, HandshakeFailed | trio.TooSlowError):
                reason = str(error) or f"no TLS handshake within {timeout_s:g} s"
                raise OSError(f"TLS with {host}:{stream.remote_address[1]} failed: {reason}") from error
            raise
        return secured

    def refresh(self, changed: frozenset[str] = frozenset()) -> None:
        """As `ListenerTls.refresh`; connections that are open keep what they agreed on."""
        prefix = listener_key(self._settings.listener, PREFIX)
        files = self._settings.files()
        if files == self._stores_files and not any(name.startswith((prefix, PREFIX)) for name in changed):
            return
        try:
            self._context = self._make(self._settings)
            self._stores_files = files
        except TlsError as error:
            logger.error("Connections between brokers keep their old TLS settings: %s; fix: %s", error.cause, error.fix)
