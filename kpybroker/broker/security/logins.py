"""The SASL mechanisms of each listener, made from the configuration, and made again when that changes.

Kafka's ``SaslChannelBuilder``. `BUILDERS` has a function for each mechanism that is available; a mechanism is made once
for a listener. Whatever is wrong with the settings is a `LoginConfigError` at the start, with its fix; a dynamic change
that cannot be applied is logged, and the mechanisms stay as they were.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kpybroker.broker.security.login_settings import LoginConfigError as LoginConfigError
from kpybroker.config.jaas import JAAS, listener_key, login_modules, mechanism_key
from kpybroker.config.values import ConfigError
from kpybroker.core.security.scram import BY_NAME
from kpybroker.core.security.secret import Secret
from kpybroker.wire.map_order import java_hash_map_order

if TYPE_CHECKING:
    from kpybroker.broker.security.scram_users import ScramUsers
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.config.sources.jaas import LoginModule
    from kpybroker.core.security.sasl.mechanism import Mechanism
    from kpybroker.core.security.sasl.scram_login import TokenLogin

logger = logging.getLogger("kafka.network.SocketServer")

ENABLED: Final = "sasl.enabled.mechanisms"
CALLBACK: Final = "sasl.server.callback.handler.class"
RECEIVE_SIZE_MAX: Final = "sasl.server.max.receive.size"
SESSION_MS_MAX: Final = "connections.max.reauth.ms"
FAILURE_DELAY_MS: Final = "connection.failed.authentication.delay.ms"

FRAME_BYTES_MAX: Final = 64 * 1024
"""Before a login, unless `sasl.server.max.receive.size` is set."""
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER_PREFIX: Final = "user_"
NONCE_BYTES: Final = 24


TokenOf = Callable[[str, str], "TokenLogin | None"]
"""(mechanism, token id) -> a delegation token."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where mechanisms find credentials that are not in the configuration."""

    scram_users: ScramUsers
    token_of: TokenOf | None = None
    decoy_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)


@dataclass(frozen=True, slots=True)
class MechanismSettings:
    """What a builder may read: the configuration as one mechanism of one listener sees it."""

    config: BrokerConfig
    listener: str
    mechanism: str
    sources: Sources

    def text(self, key: str) -> str | None:
        """`key` as set for this mechanism of this listener; None where it is not set for exactly that."""
        return self.config.effective.get(mechanism_key(self.listener, self.mechanism, key))

    def modules(self) -> Sequence[LoginModule]:
        """The login modules of its JAAS context. Raises LoginConfigError."""
        try:
            return login_modules(self.config, self.listener, self.mechanism)
        except ConfigError as error:
            raise LoginConfigError(str(error), f"set {self.example()}") from error

    def modules_of(self, class_name: str) -> Sequence[LoginModule]:
        """Those of this class; at least one. Raises LoginConfigError."""
        found = [module for module in self.modules() if module.name == class_name]
        if not found:
            named = ", ".join(module.name for module in self.modules())
            raise LoginConfigError(
                f"{self.mechanism} on listener {self.listener} has the JAAS module {named}, which is not for it",
                f"set {self.example()}",
            )
        return found

    def example(self) -> str:
        """A JAAS setting to start from."""
        key = mechanism_key(self.listener, self.mechanism, JAAS)
        if self.mechanism in BY_NAME:
            return f"{key}={SCRAM_MODULE} required;"
        if self.mechanism == "PLAIN":
            return f'{key}={PLAIN_MODULE} required user_alice="...";'
        return key


Builder = Callable[[MechanismSettings], "Mechanism"]


def _plain(settings: MechanismSettings) -> Mechanism:
    from kpybroker.core.security.sasl.plain import PlainMechanism, of_users

    callback = settings.text(CALLBACK)
    if callback is not None:
        settings.modules()  # Kafka too needs a context
        return PlainMechanism(_load_check(settings, callback), blocks=True)
    users: dict[str, Secret] = {}
    for module in settings.modules_of(PLAIN_MODULE):
        for name, value in module.options.items():
            if name.startswith(USER_PREFIX):
                users.setdefault(name.removeprefix(USER_PREFIX), Secret(value))
    return PlainMechanism(of_users(users))


def _load_check(settings: MechanismSettings, value: str) -> Callable[[str, str], bool]:
    """The function that an entry point `package.module:function` names."""
    from importlib.metadata import EntryPoint

    key = mechanism_key(settings.listener, settings.mechanism, CALLBACK)
    fix = f"set {key}=package.module:function, a Python function of user name and password that returns True or False"
    if ":" not in value:
        raise LoginConfigError(f"{key}={value} is a Java class, and there is no JVM here to load it", fix)
    try:
        check = EntryPoint(name="check", value=value, group="kpybroker").load()
    except (ImportError, AttributeError) as error:
        raise LoginConfigError(f"{key}={value} cannot be loaded: {error}", fix) from error
    if not callable(check):
        raise LoginConfigError(f"{key}={value} is not a function", fix)
    loaded: Callable[[str, str], bool] = check
    return loaded


def _scram(settings: MechanismSettings) -> Mechanism:
    from kpybroker.core.security.sasl.scram_login import ScramServer

    if (callback := settings.text(CALLBACK)) is not None:
        key = mechanism_key(settings.listener, settings.mechanism, CALLBACK)
        raise LoginConfigError(
            f"{key}={callback} is not available: SCRAM reads its users from /config/users", f"remove {key}"
        )
    settings.modules_of(SCRAM_MODULE)
    sources, mechanism = settings.sources, BY_NAME[settings.mechanism]
    token_of = sources.token_of
    return ScramServer(
        mechanism,
        lambda name: sources.scram_users.credential(mechanism, name),
        lambda: secrets.token_urlsafe(NONCE_BYTES),
        sources.decoy_key,
        None if token_of is None else lambda token_id: token_of(settings.mechanism, token_id),
        lambda: sources.scram_users.usual_form(mechanism),
    )


def _oauthbearer(settings: MechanismSettings) -> Mechanism:
    from kpybroker.broker.security.oauthbearer import make

    return make(settings)


def _gssapi(settings: MechanismSettings) -> Mechanism:
    from kpybroker.broker.security.kerberos import make

    return make(settings)


BUILDERS: Final[dict[str, Builder]] = {
    "PLAIN": _plain,
    **dict.fromkeys(BY_NAME, _scram),
    "OAUTHBEARER": _oauthbearer,
    "GSSAPI": _gssapi,
}
"""Mechanism -> what makes it. Builders import what they need when they are called."""


class ListenerLogins:
    """The mechanisms of one listener (a `gate.Logins`)."""

    def __init__(self, config: BrokerConfig, listener: str, sources: Sources) -> None:
        """Raises LoginConfigError."""
        self._config = config
        self._listener = listener
        self._sources = sources
        self._made = self._make()
        config.on_change(self._changed)

    @property
    def mechanism_names(self) -> list[str]:
        """As `gate.Logins`."""
        return list(java_hash_map_order(tuple(self._made)))

    @property
    def failure_delay_s(self) -> float:
        """As `gate.Logins`."""
        return self._config.get_int(FAILURE_DELAY_MS) / 1000

    @property
    def frame_bytes_max(self) -> int:
        """As `gate.Logins`."""
        key = listener_key(self._listener, RECEIVE_SIZE_MAX)
        is_set = not self._config.effective.keys().isdisjoint({key, RECEIVE_SIZE_MAX})
        return self._config.get_int(key) if is_set else FRAME_BYTES_MAX

    def mechanism(self, name: str) -> Mechanism | None:
        """As `gate.Logins`."""
        return self._made.get(name)

    def session_ms_max(self, mechanism: str) -> int:
        """As `gate.Logins`."""
        own = self._config.effective.get(mechanism_key(self._listener, mechanism, SESSION_MS_MAX))
        return int(own) if own is not None else self._config.get_int(listener_key(self._listener, SESSION_MS_MAX))

    def _make(self) -> Mapping[str, Mechanism]:
        names = self._config.get_list(listener_key(self._listener, ENABLED))
        if not names:
            raise LoginConfigError(
                f"listener {self._listener} needs a login, but {ENABLED} is empty",
                f"set {ENABLED} to one or more of {', '.join(BUILDERS)}",
            )
        return {name: self._build(name) for name in names}

    def _build(self, name: str) -> Mechanism:
        if name not in BUILDERS:
            raise LoginConfigError(
                f"SASL mechanism {name} of listener {self._listener} is not available",
                f"set {ENABLED} to one or more of {', '.join(BUILDERS)}",
            )
        return BUILDERS[name](MechanismSettings(self._config, self._listener, name, self._sources))

    def _changed(self, names: frozenset[str]) -> None:
        if any(ENABLED in name or JAAS in name for name in names):
            try:
                self._made = self._make()
            except LoginConfigError as error:
                logger.error(
                    "Listener %s keeps its SASL mechanisms as they were: %s; fix: %s",
                    self._listener,
                    error.cause,
                    error.fix,
                )
