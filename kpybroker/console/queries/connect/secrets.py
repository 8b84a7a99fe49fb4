"""Which values of a connector's configuration are never shown: what a plugin calls a password, what is named like one,
an address with a login, and every value whose plugin does not say what its keys are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.properties import is_secret
from kpybroker.console.queries.connect.rest import Asking, Key

SECRET: Final = "(secret)"
NAMED: Final = re.compile(
    r"credential|passphrase|private\.?key|api\.?key|access\.?key|auth\.header|jaas", re.IGNORECASE
)
"""Keys that hold secrets, besides those of `properties.SECRET`."""
LOGIN: Final = re.compile(r"://[^/\s@]*:[^/\s]*@|(password|pwd|secret|token)\s*[=:]", re.IGNORECASE)
"""In a value: an address with a login."""
OWN: Final = frozenset(("name", "connector.class", "tasks.max", "topics", "topics.regex", "transforms", "predicates"))
"""Keys of Connect itself, which no plugin explains."""
PARTS: Final = re.compile(r"((?:transforms|predicates)\.[^.]+)\.(.+)|((?:key|value|header)\.converter)\.(.+)")
NO_SECRETS: Final = frozenset(("BOOLEAN", "INT", "SHORT", "LONG", "DOUBLE"))
"""Types of keys that hold no secret, whatever their names."""
SHORT: Final = 4
"""A secret of so few characters is replaced in a text only where it is a word."""


class Knowledge(NamedTuple):
    """What plugins say of their keys, by what their keys begin with: empty for the connector's own; None where one does
    not say.
    """

    keys: Mapping[str, Mapping[str, Key] | None]

    def key(self, name: str) -> Key | None:
        """What is known of a key of the configuration."""
        owner, inner = owner_of(name)
        return (self.keys.get(owner) or {}).get(inner)

    def is_hidden(self, name: str, value: str) -> bool:
        """Whether the value of this key is never shown."""
        found = self.key(name)
        if found is not None and found.type in NO_SECRETS:
            return False
        if is_secret(name) or NAMED.search(name) or LOGIN.search(value):
            return True
        owner, inner = owner_of(name)
        if self.keys.get(owner, {}) is None:
            return name not in OWN and not (owner and inner in ("type", "predicate", "negate"))
        return found is not None and found.type == "PASSWORD"

    def hidden(self, config: Mapping[str, str]) -> dict[str, str]:
        """The part of a configuration that is never shown."""
        return {name: value for name, value in config.items() if self.is_hidden(name, value)}

    def shown(self, config: Mapping[str, str]) -> dict[str, str]:
        """A configuration without its secrets."""
        return {name: SECRET if self.is_hidden(name, value) else value for name, value in config.items()}


def owner_of(name: str) -> tuple[str, str]:
    """Whose key it is, and its name there: `transforms.mask`, `value.converter`, or empty for the connector's own."""
    match = PARTS.fullmatch(name)
    if match is None:
        return "", name
    return (match[1], match[2]) if match[1] else (match[3], match[4])


def classes_of(config: Mapping[str, str]) -> dict[str, str]:
    """The class of each owner of keys in a configuration."""
    found = {"": config.get("connector.class", "")}
    for name in config:
        owner, _ = owner_of(name)
        if owner:
            found[owner] = config.get(owner if owner.endswith(".converter") else f"{owner}.type", "")
    return found


def knowledge(asking: Asking, config: Mapping[str, str]) -> Knowledge:
    """What the plugins of a configuration say. Where one cannot be asked, its values are hidden."""
    found: dict[str, Mapping[str, Key] | None] = {}
    for owner, java_class in classes_of(config).items():
        try:
            keys = asking.keys(java_class, is_connector=not owner) if java_class else None
        except CommandError:
            keys = None
        found[owner] = None if keys is None else {one.name: one for one in keys}
    return Knowledge(found)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """A text of Connect without secrets that it may repeat."""
    for one in sorted(filter(None, secrets), key=len, reverse=True):
        if len(one) >= SHORT:
            text = text.replace(one, "***")
        else:
            text = re.sub(rf"(?<!\w){re.escape(one)}(?!\w)", "***", text)
    return text
