"""The APIs by key: names, versions, header versions, and their message classes, imported on first use.

The table itself is generated (`messages/keys.py`). It says what we can read and write; the ledgers of the
handlers say what this broker serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from kpybroker.wire.messages.keys import APIS, ApiKey
from kpybroker.wire.schema import Message

__all__ = ["API_INFO", "ApiInfo", "ApiKey"]


@dataclass(frozen=True, slots=True)
class ApiInfo:
    """One API. `valid_versions` is inclusive; `flexible_from` is the first version with KIP-482 encoding."""

    key: ApiKey
    name: str
    valid_versions: tuple[int, int]
    flexible_from: int

    def request_class(self) -> type[Message]:
        """The request's message class; imports its module on first use."""
        return self._message_class("Request")

    def response_class(self) -> type[Message]:
        """The response's message class; imports its module on first use."""
        return self._message_class("Response")

    def request_header_version(self, version: int) -> int:
        """0 without a client id (ControlledShutdown 0 only), 1 with one, 2 with tagged fields."""
        if self.key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        """1 with tagged fields. ApiVersions keeps 0: a client cannot know the response's version (KIP-511)."""
        if self.key == ApiKey.API_VERSIONS:
            return 0
        return 1 if version >= self.flexible_from else 0

    def supports(self, version: int) -> bool:
        """Whether we can read and write this version."""
        return self.valid_versions[0] <= version <= self.valid_versions[1]

    def _message_class(self, suffix: str) -> type[Message]:
        return _message_class(self.key, self.name + suffix)


@cache
def _message_class(key: ApiKey, name: str) -> type[Message]:
    module = import_module(f"kpybroker.wire.messages.{key.name.lower()}")
    message_class: type[Message] = getattr(module, name)
    return message_class


API_INFO: dict[ApiKey, ApiInfo] = {
    key: ApiInfo(key, name, (lowest, highest), flexible_from)
    for key, (name, lowest, highest, flexible_from) in APIS.items()
}
