"""What the makers of mechanisms have in common: the settings that they read, and the error for wrong ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kpybroker.config.jaas import listener_key, mechanism_key
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.values import ConfigError, Value

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.config.sources.jaas import LoginModule


class LoginConfigError(Exception):
    """Settings of logins that cannot be used: the cause in one line, what fixes it in another."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix


class PeerLoginFailed(OSError):
    """The other broker refused the login, or is not the one it should be; or there is nothing to log in with now."""


class Settings(Protocol):
    """The configuration as one mechanism of one listener sees it (`logins.MechanismSettings`)."""

    @property
    def config(self) -> BrokerConfig:
        """The broker's."""

    @property
    def listener(self) -> str:
        """The name of the listener."""

    @property
    def mechanism(self) -> str:
        """Kafka's name of the mechanism."""

    def text(self, key: str) -> str | None:
        """`key` as set for this mechanism of this listener; None where it is not set for exactly that."""

    def modules_of(self, class_name: str) -> Sequence[LoginModule]:
        """The login modules of this class in its JAAS context; at least one. Raises LoginConfigError."""


def value(settings: Settings, key: str) -> Value:
    """`key` for the mechanism, else for the listener, else for the broker. Raises LoginConfigError."""
    text = settings.text(key)
    try:
        if text is None:
            return settings.config.get(listener_key(settings.listener, key))
        return BROKER_KEYS[key].parse(text)
    except ConfigError as error:
        name = mechanism_key(settings.listener, settings.mechanism, key)
        raise LoginConfigError(f"{name}: {error}", f"set {name} to a valid value") from None
