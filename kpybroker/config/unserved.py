"""Security that a user asks for and that is not served yet: the start is refused, so that nothing is less safe than it
looks.

Refused is what demands that another authorizer than ours decides, or what says how without one. The keys of TLS and
logins demand nothing while no listener uses them; `interpret` reports that they have no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.values import ConfigTextError

if TYPE_CHECKING:
    from kpybroker.config.config_lookup import ConfigLookup

EVERYONE = "every client may do everything"

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
"""The one authorizer, under the name of Kafka's class."""

AUTHORIZER_KEYS: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Keys that Kafka's authorizers read, and that the broker does not define."""

_Demands = Callable[[str], bool]

_DEMANDS: Final[dict[str, tuple[_Demands, str]]] = {
    "authorizer.class.name": (lambda value: value not in ("", ACL_AUTHORIZER), f"only {ACL_AUTHORIZER} is available"),
    "authorizer.zookeeper.url": (bool, "ACLs are kept where the cluster's other data is"),
    "super.users": (bool, EVERYONE),
    "allow.everyone.if.no.acl.found": (lambda value: value.lower() == "false", EVERYONE),
}
"""Key -> whether a value demands something that is not served, and what is the case instead."""


class NotServed(ConfigTextError):
    """Security settings that cannot be met. `names` are their keys; `name` is the first."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        self.names = [name for name, _ in found]
        super().__init__(self.names[0], "not served yet: " + ", ".join(sentence for _, sentence in found))


def check_served(config: ConfigLookup) -> None:
    """Raise one `NotServed` for all settings that demand security which is not served."""
    found = list(_keys(config))
    if found:
        raise NotServed(found)


def is_unserved(name: str, text: str) -> bool:
    """Whether this value of a key demands security that is not served."""
    demands = _DEMANDS.get(base_key(name))
    return demands is not None and demands[0](text.strip())


def _keys(config: ConfigLookup) -> Iterator[tuple[str, str]]:
    has_authorizer = config.effective.get("authorizer.class.name", "").strip() == ACL_AUTHORIZER
    for name, text in config.effective.items():
        if is_unserved(name, text) and not (has_authorizer and name in AUTHORIZER_KEYS):
            yield name, f"{name}={text.strip()} ({_DEMANDS[base_key(name)][1]})"
