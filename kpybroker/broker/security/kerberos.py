"""GSSAPI (RFC 4752): logins with Kerberos tickets, by the system's library and its Python binding `gssapi`.

Kafka's use of Java's ``GssKrb5Server``: the broker's key is in the keytab that the JAAS module names, the security
layer is always "none" (TLS does that), and the authorization id of the client is ignored. A login reads the keytab and
the replay cache, so it runs in a thread.

    token -> token (until the context is established), empty -> layers offered, layer chosen -> logged in
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from kpybroker.broker.security.login_settings import LoginConfigError, value
from kpybroker.config.jaas import JAAS, listener_key, login_modules, mechanism_key
from kpybroker.config.values import ConfigError
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.kerberos_names import NoMatchingRule, ShortNames, parse_name, parse_rules
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kpybroker.broker.security.login_settings import Settings
    from kpybroker.config.broker import BrokerConfig

NAME: Final = "GSSAPI"
MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
RULES: Final = "sasl.kerberos.principal.to.local.rules"
SERVICE: Final = "sasl.kerberos.service.name"
EXTRA: Final = "pip install 'kpybroker[kerberos]', which needs the headers of MIT Kerberos (Debian: libkrb5-dev)"
NO_LAYER: Final = 1
"""The bit of "no security layer" in both messages about layers."""
LAYERS_OFFERED: Final = bytes([NO_LAYER]) + (65536).to_bytes(3, "big")
"""Java's: no layer alone, and a size that then means nothing."""
LAYER_CHOSEN: Final = bytes([NO_LAYER, 0, 0, 0])
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
        """Take the client's token; the token in return, if there is one."""

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
            token = context.step(response)
            if token or not context.complete:
                return token or b""
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
    gssapi = _library()
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
    service = cast("str | None", value(settings, SERVICE))
    key = own_key(settings.listener, settings.modules_of(MODULE)[0].options, service)
    return key.credentials("accept", keytab=f"FILE:{key.path}")


class OwnKey(NamedTuple):
    """A broker's own principal, and the keytab with its key."""

    principal: str
    path: str
    fix: str

    def credentials(self, usage: str, **store: str) -> Any:
        """Credentials of the library. Raises LoginConfigError."""
        import gssapi

        try:
            name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal)
            return gssapi.Credentials(name=name, usage=usage, store=store)
        except gssapi.exceptions.GSSError as error:
            cause = f"the keytab {self.path} has no usable key of {self.principal}: {error}"
            raise LoginConfigError(cause, self.fix) from None


def own_key(listener: str, options: Mapping[str, str], service: str | None) -> OwnKey:
    """The key that a JAAS module names. Raises LoginConfigError."""
    key_tab, principal = options.get("keyTab"), options.get("principal")
    key = mechanism_key(listener, NAME, JAAS)
    fix = f'set {key}={MODULE} required useKeyTab=true keyTab="/etc/kafka.keytab" principal="kafka/host@REALM";'
    if not key_tab or not principal:
        missing = "principal" if key_tab else "keyTab"
        raise LoginConfigError(f"the Kerberos login of listener {listener} has no {missing}", fix)
    path = key_tab.removeprefix("file:").removeprefix("FILE:")
    if not Path(path).is_file():
        raise LoginConfigError(f"the keytab {path} cannot be found", fix)
    if service is not None and parse_name(principal).primary != service:
        raise LoginConfigError(
            f"the Kerberos principal {principal} is not of the service {service}",
            f"set {SERVICE} to the first part of the principal in the JAAS module",
        )
    return OwnKey(principal, path, fix)


# --- the client's side


class KerberosFailed(OSError):
    """This broker has no ticket, or the other one is not the one it should be."""


class Initiator:
    """The login of this broker at another one (a `client_logins.ClientLogin`)."""

    def __init__(self, new_context: Callable[[], Any], failure: type[Exception]) -> None:
        self._new_context = new_context
        self._failure = failure
        self._context: Any = None
        self._has_chosen = False

    def first(self) -> bytes:
        """Asks the KDC for a ticket, if there is none yet."""
        try:
            self._context = self._new_context()
            return self._context.step() or b""
        except (self._failure, LoginConfigError) as error:
            raise KerberosFailed(f"Kerberos: {error}") from None

    def next(self, challenge: bytes) -> bytes | None:
        """As `ClientLogin.next`."""
        context = self._context
        try:
            if self._has_chosen:
                return None
            if not context.complete:
                return context.step(challenge) or b""
            layers = bytes(context.unwrap(challenge).message)
            if len(layers) < MESSAGE_BYTES_MIN or not layers[0] & NO_LAYER:
                raise KerberosFailed("Kerberos: the other broker wants a security layer")
            self._has_chosen = True
            return bytes(context.wrap(LAYER_CHOSEN, False).message)
        except self._failure as error:
            raise KerberosFailed(f"Kerberos: {error}") from None


def initiator(config: BrokerConfig, listener: str) -> Callable[[str], Initiator]:
    """What starts a login at the broker on a host. Raises LoginConfigError."""
    gssapi = _library()
    try:
        modules = [module for module in login_modules(config, listener, NAME) if module.name == MODULE]
    except ConfigError as error:
        raise LoginConfigError(str(error), f"set {mechanism_key(listener, NAME, JAAS)}") from None
    options = modules[0].options if modules else {}
    service = config.get_str(listener_key(listener, SERVICE)) or options.get("serviceName")
    if not service:
        raise LoginConfigError(f"brokers log in with GSSAPI, but {SERVICE} is not set", f"set {SERVICE}=kafka")
    key = own_key(listener, options, service)
    tickets = f"MEMORY:kpybroker-{secrets.token_hex(8)}"

    def new_context(host: str) -> Any:
        own = key.credentials("initiate", client_keytab=f"FILE:{key.path}", ccache=tickets)
        target = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
        context = gssapi.SecurityContext(name=target, creds=own, usage="initiate", mech=gssapi.MechType.kerberos)
        context.__DEFER_STEP_ERRORS__ = False
        return context

    return lambda host: Initiator(lambda: new_context(host), gssapi.exceptions.GSSError)


def _library() -> Any:
    try:
        import gssapi
    except ImportError as error:
        raise LoginConfigError("GSSAPI needs the package gssapi", EXTRA) from error
    return gssapi


def default_realm() -> str:
    """The realm of names without one, from krb5.conf; empty where it has none."""
    import gssapi

    try:
        name = gssapi.Name("name", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
    except gssapi.exceptions.GSSError:
        return ""
    return str(name).rpartition("@")[2]
