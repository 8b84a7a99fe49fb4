"""`ConfigLookup`: what the modules below `BrokerConfig` read of it, so that they need not import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kpybroker.config.listeners import Endpoint
from kpybroker.config.values import Value


class ConfigLookup(Protocol):
    """The typed look-ups of one broker's configuration. `BrokerConfig` documents each."""

    def get(self, name: str) -> Value:
        """The typed value, None where it is null."""

    def get_int(self, name: str) -> int:
        """An INT, SHORT or LONG key that has a value."""

    def get_bool(self, name: str) -> bool:
        """A BOOLEAN key that has a value."""

    def get_str(self, name: str) -> str:
        """A STRING key, "" where it is null."""

    def get_list(self, name: str) -> tuple[str, ...]:
        """A LIST key, empty where it is null."""

    def get_optional_int(self, name: str) -> int | None:
        """An INT, SHORT or LONG key, None where it is null."""

    def milliseconds(self, stem: str) -> int:
        """A time that has a key for each unit; -1 is unlimited."""

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The log directories."""

    @property
    def security_protocols(self) -> dict[str, str]:
        """Listener name -> security protocol."""

    @property
    def listeners(self) -> tuple[Endpoint, ...]:
        """The listeners to bind."""

    @property
    def advertised_listeners(self) -> tuple[Endpoint, ...]:
        """The listeners that clients are given; empty where not set."""

    @property
    def inter_broker_listener_name(self) -> str:
        """The listener that brokers use among themselves, in upper case."""

    @property
    def effective(self) -> Mapping[str, str]:
        """Every key that is set in some layer, unparsed."""
