"""Keys that give one another a value.

Three kinds, as in Kafka: broker keys in several units (`log.retention.hours|minutes|ms`: the finest unit that is set
wins), topic keys with the broker keys that give their default (`keys.topic`), and keys of one listener
(`listener.name.<listener>.<key>`, KIP-103), which take precedence over the plain key.
"""

from __future__ import annotations

import re
from typing import Final

from kpybroker.config.keys.topic import TOPIC_ROWS

_ROLL: Final = ("log.roll.ms", "log.roll.hours")
_JITTER: Final = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")

_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    **{name: group for group in (_ROLL, _JITTER, _RETENTION) for name in group},
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}

LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")

LISTENER_MECHANISM_KEYS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""May also be set for one SASL mechanism: `listener.name.<listener>.<mechanism>.<key>`."""

TOPIC_SYNONYMS: Final[dict[str, str]] = {row[0]: row[5][0] for row in TOPIC_ROWS if row[5]}
"""Topic key -> the first broker key that gives its default."""

TOPIC_DEFAULT_KEYS: Final = frozenset(name for row in TOPIC_ROWS for name in row[5])
"""Every broker key that gives the default of a topic key: a change of one changes topics."""

MILLISECONDS_PER: Final = {"hours": 3_600_000, "minutes": 60_000, "ms": 1}


def base_key(name: str) -> str:
    """The key of the tables that a listener's key overrides; `name` itself when it is not one."""
    match = LISTENER_KEY.fullmatch(name)
    if match is None:
        return name
    base = match.group(1)
    return next((key for key in LISTENER_MECHANISM_KEYS if base.endswith(key)), base)


def broker_synonyms(name: str, match_listener_override: bool = True) -> tuple[str, ...]:
    """Every key that may give `name` its value, most specific first
    (``DynamicBrokerConfig.brokerConfigSynonyms``).
    """
    if name in _GROUPS:
        return _GROUPS[name]
    if match_listener_override and LISTENER_KEY.fullmatch(name):
        return (name, base_key(name))
    return (name,)
