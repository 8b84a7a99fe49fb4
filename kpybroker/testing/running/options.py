"""What a `Broker` and a `Cluster` are made with: as keywords for editors and type checkers, and as one value."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, cast

from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import Kind
from kpybroker.testing.errors import UsageError

if TYPE_CHECKING:
    import os

    from kpybroker.testing.clients import GroupProtocol
    from kpybroker.testing.security import Sasl

F = TypeVar("F", bound=Callable[..., Any])

START_S: Final = 60.0


class BrokerKeywords(TypedDict, total=False):
    """The keyword arguments of `Broker` and `Cluster`; `BrokerOptions` has their defaults."""

    topics: Sequence[str] | Mapping[str, int]
    partitions: int | None
    auto_create: bool | None
    config: Mapping[str, Any] | None
    kafka_version: str | None
    group_protocol: GroupProtocol | None
    tls: bool
    sasl: Sasl | None
    acl: bool
    host: str
    port: int
    data_dir: str | os.PathLike[str] | None
    keep: bool
    in_thread: bool
    start_timeout: float


OPTIONS: Final[Mapping[str, Kind]] = {
    "topics": kinds.topics,
    "partitions": kinds.optional(kinds.partitions),
    "auto_create": kinds.optional(kinds.flag),
    "config": kinds.optional(kinds.settings),
    "kafka_version": kinds.optional(kinds.release),
    "group_protocol": kinds.optional(kinds.one_of("classic", "consumer")),
    "tls": kinds.flag,
    "sasl": kinds.optional(kinds.one_of("plain", "scram", "oauthbearer")),
    "acl": kinds.flag,
    "host": kinds.text,
    "port": kinds.integer(0, 65_535),
    "data_dir": kinds.optional(kinds.directory),
    "keep": kinds.flag,
    "in_thread": kinds.flag,
    "start_timeout": kinds.number(0.001, 3_600),
}
"""The kinds of `BrokerKeywords`."""
_OWN: Final = {
    "partitions": "num.partitions",
    "auto_create": "auto.create.topics.enable",
    "kafka_version": "kpybroker.kafka.version",
}
"""Options that are keys of the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """See `Broker`."""

    topics: Sequence[str] | Mapping[str, int] = ()
    partitions: int | None = None
    auto_create: bool | None = None
    config: Mapping[str, Any] | None = None
    kafka_version: str | None = None
    group_protocol: GroupProtocol | None = None
    tls: bool = False
    sasl: Sasl | None = None
    acl: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    data_dir: str | os.PathLike[str] | None = None
    keep: bool = False
    in_thread: bool = False
    start_timeout: float = START_S

    def keys(self) -> dict[str, str]:
        """The keys of the broker. Raises UsageError where one is there twice, with different values."""
        keys = {name: text_of(value) for name, value in (self.config or {}).items()}
        for option, key in _OWN.items():
            value = getattr(self, option)
            if value is not None:
                if keys.get(key, text_of(value)) != text_of(value):
                    raise UsageError(f"{option}={value!r}, and config={{{key!r}: {keys[key]!r}}}", "give one of them")
                keys[key] = text_of(value)
        return keys

    def topic_partitions(self) -> dict[str, int]:
        """Topics to create, and how many partitions each has."""
        return (
            dict(self.topics) if isinstance(self.topics, Mapping) else dict.fromkeys(self.topics, self.partitions or 1)
        )


def text_of(value: Any) -> str:
    """A value of a configuration key as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def takes(options: type) -> Callable[[F], F]:
    """Let `help()`, and notebooks, show the fields of `options` in the place of a function's `**` argument."""

    def shown(function: F) -> F:
        own = inspect.signature(function)
        named = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        fields = inspect.signature(options).parameters.values()
        function.__dict__["__signature__"] = own.replace(parameters=[*named, *fields])
        return function

    return shown


def by_one_name(function: F) -> F:
    """Take `num_brokers` for `brokers`, the name that it had, with a warning."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if "num_brokers" in options:
            if "brokers" in options:
                raise UsageError("num_brokers= and brokers= are the same", "give brokers= alone")
            warnings.warn("num_brokers= is called brokers= now", DeprecationWarning, stacklevel=2)
            options["brokers"] = options.pop("num_brokers")
        return function(*args, **options)

    return cast("F", call)
