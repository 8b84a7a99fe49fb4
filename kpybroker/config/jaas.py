"""Which login modules a listener's mechanism has: Kafka's ``JaasContext.loadServerContext``.

First `listener.name.<listener>.<mechanism>.sasl.jaas.config`, which holds exactly one module; then, in the JAAS file,
the context `<listener>.KafkaServer`, and then `KafkaServer`, which may hold the modules of several mechanisms. Listener
and mechanism are in lower case in all of these. A plain `sasl.jaas.config` is for clients, and a broker ignores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kpybroker.config.sources.jaas import JaasError, LoginModule, parse_jaas, parse_login_modules
from kpybroker.config.values import ConfigTextError

if TYPE_CHECKING:
    from kpybroker.config.config_lookup import ConfigLookup

JAAS: Final = "sasl.jaas.config"
JAAS_FILE: Final = "kpybroker.jaas.config.file"
SERVER_CONTEXT: Final = "KafkaServer"


def listener_key(listener: str, key: str) -> str:
    """`key` for one listener; it takes precedence over the plain key."""
    return f"listener.name.{listener.lower()}.{key}"


def mechanism_key(listener: str, mechanism: str, key: str) -> str:
    """`key` for one mechanism of one listener."""
    return listener_key(listener, f"{mechanism.lower()}.{key}")


def login_modules(config: ConfigLookup, listener: str, mechanism: str) -> Sequence[LoginModule]:
    """The modules of the context that this mechanism uses; at least one.

    Raises `ConfigTextError` where there is none, or where it cannot be read. It shows no value of an option.
    """
    key = mechanism_key(listener, mechanism, JAAS)
    text = config.effective.get(key)
    if text is not None:
        return _of_value(key, text)
    file = config.get_str(JAAS_FILE)
    contexts = _of_file(file) if file else {}
    own = f"{listener.lower()}.{SERVER_CONTEXT}"
    modules = contexts.get(own) or contexts.get(SERVER_CONTEXT)
    if not modules:
        place = f"{file} has neither" if file else "there is no JAAS file with"
        raise ConfigTextError(
            key, f"{mechanism} on listener {listener} has no JAAS configuration: {place} {own} or {SERVER_CONTEXT}"
        )
    return modules


def option(modules: Sequence[LoginModule], class_name: str, name: str) -> str | None:
    """The option of the first module of that class that has it."""
    return next((m.options[name] for m in modules if m.name == class_name and name in m.options), None)


def _of_value(key: str, text: str) -> list[LoginModule]:
    try:
        modules = parse_login_modules(key, text)
    except JaasError as error:
        raise ConfigTextError(key, f"malformed JAAS configuration: {error}") from None
    if len(modules) != 1:
        raise ConfigTextError(key, f"{key} contains {len(modules)} login modules, should be 1 module")
    return modules


def _of_file(file: str) -> dict[str, list[LoginModule]]:
    try:
        return parse_jaas(file, Path(file).read_text())
    except OSError as error:
        raise ConfigTextError(JAAS_FILE, f"the JAAS file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigTextError(JAAS_FILE, f"the JAAS file {file} is not UTF-8") from None
    except JaasError as error:
        raise ConfigTextError(JAAS_FILE, f"malformed JAAS file: {error}") from None
