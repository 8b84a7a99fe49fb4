"""Metadata and rule sets of a new version: sent with it, else the latest version's, between defaults and overrides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from kpybroker.registry.rules import look_up
from kpybroker.registry.schemas.model import Definition
from kpybroker.registry.store.records import attached

RULES: Final = ("migrationRules", "domainRules", "encodingRules")

Merge = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def has_defaults(config: Mapping[str, Any]) -> bool:
    """Whether a configuration changes what a schema has."""
    return any(
        config.get(f"{when}{what}") is not None for when in ("default", "override") for what in ("Metadata", "RuleSet")
    )


def completed(
    wanted: Definition, last: Definition | None, config: Mapping[str, Any], asked: int = 0, following: int | None = None
) -> Definition:
    """What is registered. `asked` is the version that the request names, 0 for none; `following` is the new one."""
    metadata = _merged(
        config.get("defaultMetadata"),
        _specific(wanted.metadata, None if last is None else last.metadata),
        config.get("overrideMetadata"),
        _merged_metadata,
    )
    rule_set = _merged(
        config.get("defaultRuleSet"),
        _specific(wanted.rule_set, None if last is None else last.rule_set),
        config.get("overrideRuleSet"),
        _merged_rules,
    )
    properties = _object((metadata or {}).get("properties"))
    if following is not None and (asked != 0 or look_up.VERSION_PROPERTY in properties):
        metadata = {
            **(metadata or {}),
            "properties": dict(sorted({**properties, look_up.VERSION_PROPERTY: str(following)}.items())),
        }
    return wanted._replace(metadata=attached(metadata), rule_set=attached(rule_set))


def _specific(own: str | None, last: str | None) -> dict[str, Any] | None:
    text = last if own is None else own
    value = None if text is None else json.loads(text)
    return value if isinstance(value, dict) else None


def _merged(
    default: dict[str, Any] | None, specific: dict[str, Any] | None, override: dict[str, Any] | None, merge: Merge
) -> dict[str, Any] | None:
    made: dict[str, Any] | None = None
    for one in (default, specific, override):
        if one is not None:
            made = one if made is None else merge(made, one)
    return made


def _merged_metadata(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in ("tags", "properties"):
        made[name] = dict(sorted({**_object(old.get(name)), **_object(new.get(name))}.items()))
    made["sensitive"] = sorted({*_list(old.get("sensitive")), *_list(new.get("sensitive"))})
    return {name: value for name, value in made.items() if value}


def _merged_rules(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A rule takes the place of another one with its name."""
    made: dict[str, Any] = {}
    for name in RULES:
        if name in old or name in new:
            newer = _list(new.get(name))
            names = [_object(one).get("name") for one in newer]
            made[name] = [one for one in _list(old.get(name)) if _object(one).get("name") not in names] + newer
    return made


def _object(value: Any) -> dict[str, Any]:
    """Other registries may have written anything."""
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
