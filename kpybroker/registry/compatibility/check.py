"""`check`: whether a schema may follow earlier ones, by a level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpybroker.registry.compatibility import differ
from kpybroker.registry.compatibility.levels import LEVELS, Level
from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas.model import Parsed


class Earlier(NamedTuple):
    """A registered version."""

    version: int
    schema: Parsed


def check(name: str, new: Parsed, earlier: Sequence[Earlier]) -> list[str]:
    """Why `new` may not follow `earlier`, which is in ascending order; empty if it may. Raises RegistryError 42201."""
    level = LEVELS[name]
    compared = earlier if level.transitive else earlier[-1:]
    for one in reversed(compared):
        try:
            found = _between(level, new, one.schema)
        except RecursionError:
            raise invalid_schema("its types refer to one another too deep to be compared") from None
        if found:
            found += [
                f"{{oldSchemaVersion: {one.version}}}",
                f"{{oldSchema: '{one.schema.canonical}'}}",
                f"{{compatibility: '{name}'}}",
            ]
            return found
    return []


def _between(level: Level, new: Parsed, old: Parsed) -> list[str]:
    if not (level.backward or level.forward):
        return []
    if new.kind != old.kind:
        return [f"Incompatible because of different schema type: {new.kind} in place of {old.kind}"]
    found = []
    if level.backward:
        found += [reason.written("new", "old") for reason in differ.differences(new, old)]
    if level.forward:
        found += [reason.written("old", "new") for reason in differ.differences(old, new)]
    return list(dict.fromkeys(found))
