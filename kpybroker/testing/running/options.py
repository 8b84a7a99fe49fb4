"""What a `Broker` and a `Cluster` are made with: as keywords for editors and type checkers, and as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

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


def takes(options: type) -> Callable[[F], F]:
    """Let `help()`, and notebooks, show the fields of `options` in the place of a function's `**` argument."""

    def shown(function: F) -> F:
        own = inspect.signature(function)
        named = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        fields = inspect.signature(options).parameters.values()
        function.__dict__["__signature__"] = own.replace(parameters=[*named, *fields])
        return function

    return shown
