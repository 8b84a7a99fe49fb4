"""What a broker key is: the row that defines it, and `Key`, the row with names.

A row is a plain tuple, so that all tables together cost a millisecond at start: name, type, default (as text, None
where Kafka's is null), validator, importance, mode, status.

The mode is Kafka's (KIP-226): READ_ONLY needs a restart, PER_BROKER may be set for one broker only, CLUSTER_WIDE for
one broker or as the default of all. The rows are in the other modules of this package, `registry` has all of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kpybroker.config.values import PASSWORD, Validator, Value, check_value, parse_value, without_repetitions

HIGH: Final = "HIGH"
MEDIUM: Final = "MEDIUM"
LOW: Final = "LOW"

READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"

Row = tuple[str, str, str | None, Validator, str, str, str]


class Key(NamedTuple):
    """One broker key: a row of the tables, with names."""

    name: str
    type: str
    default: str | None
    validator: Validator
    importance: str
    mode: str
    status: str

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown, not even to the user who set it."""
        return self.type == PASSWORD

    def parse(self, text: str | None) -> Value:
        """The typed, checked value of `text`; raises `ConfigError`."""
        value = without_repetitions(parse_value(self.name, self.type, text), self.validator)
        if value is not None or text is not None:
            check_value(self.name, value, self.validator)
        return value
