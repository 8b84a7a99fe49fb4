"""A fault rule: which requests (`Match`), what to do (`Act`), when (`Trigger`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kpybroker.control.rules.acts import Act
from kpybroker.control.rules.triggers import Trigger
from kpybroker.wire.api import ApiKey

Test = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Texts:
    """Any of some texts, in which `*` is any number of characters and `?` is one."""

    patterns: tuple[str, ...]
    _expression: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expressions = (re.escape(one).replace(r"\*", ".*").replace(r"\?", ".") for one in self.patterns)
        object.__setattr__(self, "_expression", re.compile("|".join(expressions), re.DOTALL))

    def __call__(self, value: Any) -> bool:
        """Whether a value is one of these texts; null is not."""
        return isinstance(value, str) and self._expression.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Values:
    """Any of some values."""

    values: frozenset[Any]

    def __call__(self, value: Any) -> bool:
        """Whether it is one of them."""
        return value in self.values


@dataclass(frozen=True, slots=True)
class Condition:
    """A path of fields in the decoded request, of which one value must pass the test; arrays are looked through."""

    path: tuple[str, ...]
    test: Test


@dataclass(frozen=True, slots=True)
class Match:
    """All that is given must match; None and an empty mapping match everything.

    `named` has a test for each of the kinds in `entities.NAMED` that the rule names. With `is_asked` the test process
    decides about each request that the rest selects.
    """

    apis: frozenset[ApiKey] | None = None
    versions: tuple[int, int] | None = None
    broker: Values | None = None
    client_id: Texts | None = None
    principal: Texts | None = None
    listener: Texts | None = None
    named: Mapping[str, Test] = field(default_factory=dict)
    when: tuple[Condition, ...] = ()
    is_asked: bool = False

    def matches_api(self, api_key: int, version: int) -> bool:
        """Whether requests of this API and version can match."""
        return (self.apis is None or api_key in self.apis) and (
            self.versions is None or self.versions[0] <= version <= self.versions[1]
        )

    def matches_client(self, broker_id: int, client_id: str | None, principal: str, listener: str) -> bool:
        """Whether requests of this client can match; a null client id is an empty one."""
        return (
            (self.broker is None or self.broker(broker_id))
            and (self.client_id is None or self.client_id(client_id or ""))
            and (self.principal is None or self.principal(principal))
            and (self.listener is None or self.listener(listener))
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """`data` is the rule as it was given, for those who list it."""

    match: Match
    act: Act
    trigger: Trigger
    data: Mapping[str, Any]
