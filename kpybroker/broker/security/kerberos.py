"""GSSAPI (RFC 4752): logins with Kerberos tickets, by the system's library and its Python binding `gssapi`.

Kafka's use of Java's `GssKrb5Server`: the broker's key is in the keytab that the JAAS module names, the security layer
is always "none" (TLS does that), and the authorization id of the client is ignored. A login reads the keytab and the
replay cache, so it runs in a thread.

    token -> token (until the context is established), empty -> layers offered, layer chosen -> logged in
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from kpybroker.broker.security.login_settings import LoginConfigError, value
from kpybroker.config.jaas import JAAS, mechanism_key
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.kerberos_names import NoMatchingRule, ShortNames, parse_name, parse_rules
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kpybroker.broker.security.login_settings import Settings

logger = logging.getLogger("kafka.network.SocketServer")

NAME: Final = "GSSAPI"
MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
RULES: Final = "sasl.kerberos.principal.to.local.rules"
SERVICE: Final = "sasl.kerberos.service.name"
EXTRA: Final = "pip install 'kpybroker[kerberos]', which needs the headers of MIT Kerberos (Debian: libkrb5-dev)"
NO_LAYER: Final = 1
"""The bit of "no security layer" in both messages about layers."""
LAYERS_OFFERED: Final = bytes([NO_LAYER]) + (65536).to_bytes(3, "big")
"""Java's: no layer alone, and a size that then means nothing."""
MESSAGE_BYTES_MIN: Final = 4


class Context(Protocol):
    """The part of a `gssapi.SecurityContext` that a login uses."""

    @property
    def complete(self) -> bool:
        """Whether the peers know each other."""

    @property
    def initiator_name(self) -> object:
        """The client's principal, once complete."""

    def step(self, token: bytes) -> bytes | None:
        """Take the client's token; the answer, if there is one."""

    def wrap(self, message: bytes, encrypt: bool) -> Any:
        """`.message`: signed for the client."""

    def unwrap(self, message: bytes) -> Any:
        """`.message`: what the client signed."""


@dataclass(frozen=True, slots=True)
class GssapiMechanism:
    """GSSAPI of one listener. `failure` is the type of the library's errors."""

    new_context: Callable[[], Context]
    names: ShortNames
    failure: type[Exception]

    @property
    def name(self) -> str:
        """Always GSSAPI."""
        return NAME

    @property
    def blocks(self) -> bool:
        """Always: files are read, and cryptography is done."""
        return True

    def begin(self) -> GssapiLogin:
        """A new login."""
        return GssapiLogin(self)


class GssapiLogin:
    """One login: usually three steps."""

    __slots__ = ("_context", "_has_offered", "_mechanism")

    def __init__(self, mechanism: GssapiMechanism) -> None:
        self._mechanism = mechanism
        self._context: Context | None = None
        self._has_offered = False

    def step(self, response: bytes, now_ms: int) -> bytes | LoggedIn:
        """As `Login.step`."""
        try:
            return self._step(response)
        except self._mechanism.failure as error:
            raise LoginFailed(log_reason=f"Kerberos: {error}") from None

    def _step(self, response: bytes) -> bytes | LoggedIn:
        if self._context is None:
            self._context = self._mechanism.new_context()
        context = self._context
        if self._has_offered:
            return self._end(context, response)
        if not context.complete:
            answer = context.step(response)
            if answer or not context.complete:
                return answer or b""
        elif response:
            raise LoginFailed(log_reason="Kerberos: a token after the context was established")
        self._has_offered = True
        return bytes(context.wrap(LAYERS_OFFERED, False).message)

    def _end(self, context: Context, response: bytes) -> LoggedIn:
        chosen = bytes(context.unwrap(response).message)
        if len(chosen) < MESSAGE_BYTES_MIN or chosen[0] != NO_LAYER:
            raise LoginFailed(log_reason="Kerberos: the client chose a security layer that was not offered")
        principal = str(context.initiator_name)
        try:
            user = self._mechanism.names.user(parse_name(principal))
        except (NoMatchingRule, ValueError) as error:
            raise LoginFailed(log_reason=f"{error}; see {RULES}") from None
        return LoggedIn(Principal("User", user), reply=None)


def make(settings: Settings) -> GssapiMechanism:
    """The mechanism. Raises LoginConfigError."""
    try:
        import gssapi
    except ImportError as error:
        raise LoginConfigError("GSSAPI needs the package gssapi", EXTRA) from error
    credentials = acceptor_credentials(settings)
    try:
        names = parse_rules(cast("tuple[str, ...]", value(settings, RULES)) or (), default_realm())
    except ValueError as error:
        raise LoginConfigError(
            f"{RULES}: {error}", f"set {RULES} to rules as RULE:[1:$1@$0](.*@REALM)s/@.*//"
        ) from None

    def new_context() -> Context:
        context: Any = gssapi.SecurityContext(creds=credentials, usage="accept")
        context.__DEFER_STEP_ERRORS__ = False  # a failure ends the login, without a token that describes it
        return cast(Context, context)

    return GssapiMechanism(new_context, names, gssapi.exceptions.GSSError)


def acceptor_credentials(settings: Settings) -> Any:
    """The broker's own credentials from the keytab of its JAAS module. Raises LoginConfigError."""
    import gssapi

    options: Mapping[str, str] = settings.modules_of(MODULE)[0].options
    key_tab, principal = options.get("keyTab"), options.get("principal")
    example = (
        f'{mechanism_key(settings.listener, NAME, JAAS)}={MODULE} required useKeyTab=true keyTab="/etc/kafka.keytab" '
    )
    fix = f'set {example}principal="kafka/host@REALM";'
    if not key_tab or not principal:
        missing = "principal" if key_tab else "keyTab"
        raise LoginConfigError(f"the Kerberos login of listener {settings.listener} has no {missing}", fix)
    path = key_tab.removeprefix("file:").removeprefix("FILE:")
    if not Path(path).is_file():
        raise LoginConfigError(f"the keytab {path} cannot be found", fix)
    service = cast("str | None", value(settings, SERVICE))
    if service is not None and parse_name(principal).primary != service:
        raise LoginConfigError(
            f"the Kerberos principal {principal} is not of the service {service}",
            f"set {SERVICE} to the first part of the principal in the JAAS module",
        )
    try:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        return gssapi.Credentials(name=name, usage="accept", store={"keytab": f"FILE:{path}"})
    except gssapi.exceptions.GSSError as error:
        raise LoginConfigError(f"the keytab {path} has no usable key of {principal}: {error}", fix) from None


def default_realm() -> str:
    """The realm of names without one, from krb5.conf; empty where it has none."""
    import gssapi

    try:
        name = gssapi.Name("name", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
    except gssapi.exceptions.GSSError:
        return ""
    return str(name).rpartition("@")[2]
