"""From a rule as JSON, YAML or keyword arguments to a `Rule`. Everything that makes no sense is refused here.

Refused: fields, APIs, errors and paths that do not exist, each with the nearest that does; two acts, or none; options
of another act; a match or an act that no request of the named APIs can have. Raises FaultError and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from kpybroker.control.rules import acts
from kpybroker.control.rules.entities import NAMED
from kpybroker.control.rules.entity_table import kinds_of
from kpybroker.control.rules.errors import FaultError, nearest
from kpybroker.control.rules.fields import ACTS, MATCH, OPTIONS, TRIGGER, Field, tested
from kpybroker.control.rules.rule import Condition, Match, Rule
from kpybroker.control.rules.triggers import Trigger
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.schema import Message, struct_fields

PARTS = ("match", "act", "trigger")


def parse(data: Any, served: Collection[ApiKey]) -> Rule:
    """A rule for a broker that serves these APIs."""
    given = _object(data, "the fault")
    for name in given:
        if name not in PARTS:
            raise FaultError(f"a fault has no field `{name}`", _where_it_belongs(name))
    if "act" not in given:
        raise FaultError("the fault has no `act`", f"give one of {', '.join(ACTS)}")
    match = _match(_read(given.get("match", {}), "match", MATCH), served)
    act = _act(given["act"])
    _check_together(match, act, served)
    trigger = _trigger(_read(given.get("trigger", {}), "trigger", TRIGGER))
    return Rule(match, act, trigger, {"match": given.get("match", {}), **given})


def _object(data: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise FaultError(f"{where} is {data!r}", "give an object of fields")
    return data


def _where_it_belongs(name: str) -> str:
    for part, table in (("match", MATCH), ("act", {**ACTS, **OPTIONS}), ("trigger", TRIGGER)):
        if name in table:
            return f"put it into `{part}`"
    return nearest(name, PARTS)


def _read(data: Any, part: str, table: Mapping[str, Field]) -> dict[str, Any]:
    """The fields of one part, checked."""
    found = {}
    for name, value in _object(data, f"`{part}`").items():
        if name not in table:
            raise FaultError(f"`{part}` has no field `{name}`", nearest(name, table))
        found[name] = table[name].read(value, f"{part}.{name}")
    return found


# --- match


def _match(found: dict[str, Any], served: Collection[ApiKey]) -> Match:
    apis: frozenset[ApiKey] | None = found.get("api")
    for key in sorted(apis or ()):
        if key not in served:
            names = (API_INFO[one].name for one in served)
            raise FaultError(f"{API_INFO[key].name} is not served here", nearest(API_INFO[key].name, names))
    versions = found.get("version")
    if versions is not None and apis is not None:
        _check_versions(apis, versions)
    return Match(
        apis=apis,
        versions=versions,
        broker=found.get("broker"),
        client_id=found.get("client_id"),
        principal=found.get("principal"),
        listener=found.get("listener"),
        named={kind: found[kind] for kind in NAMED if kind in found},
        when=_conditions(found.get("when", {}), served if apis is None else apis),
        is_asked=found.get("predicate", False),
    )


def _check_versions(apis: Collection[ApiKey], versions: tuple[int, int]) -> None:
    for key in apis:
        oldest, newest = API_INFO[key].valid_versions
        if versions[0] <= newest and versions[1] >= oldest:
            return
    ranges = ", ".join(f"{API_INFO[key].name} {API_INFO[key].valid_versions}" for key in sorted(apis))
    raise FaultError(f"`match.version` is {list(versions)}, which no named API has", f"they have {ranges}")


def _conditions(data: Any, apis: Collection[ApiKey]) -> tuple[Condition, ...]:
    conditions = []
    for text, value in _object(data, "`match.when`").items():
        path = tuple(_snake_case(one) for one in text.split("."))
        _check_path(path, text, apis)
        conditions.append(Condition(path, tested(value, f"match.when.{text}")))
    return tuple(conditions)


def _snake_case(name: str) -> str:
    """`topicData` as Kafka's definitions write it -> `topic_data`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _check_path(path: tuple[str, ...], text: str, apis: Collection[ApiKey]) -> None:
    """At least one API has this path."""
    problems = []
    for key in sorted(apis):
        problem = _path_problem(path, text, API_INFO[key].request_class(), key)
        if problem is None:
            return
        problems.append(problem)
    if len(problems) > 1:
        names = ", ".join(API_INFO[key].name for key in sorted(apis)) if len(apis) <= 5 else "any API"
        raise FaultError(f"`match.when` has the path `{text}`, which is in no request of {names}", "name its `api`")
    raise problems[0]


def _path_problem(path: tuple[str, ...], text: str, message: type[Message], key: ApiKey) -> FaultError | None:
    struct: type[Message] | None = message
    for number, name in enumerate(path):
        where = f"`match.when` has the path `{text}`, but {API_INFO[key].name} has no `{'.'.join(path[: number + 1])}`"
        if struct is None:
            return FaultError(where, f"end the path at `{'.'.join(path[:number])}`")
        fields = {one.name: one for one in struct_fields(message, None if struct is message else struct)}
        if name not in fields:
            return FaultError(where, nearest(name, fields))
        struct = fields[name].struct
    if struct is not None:
        inner = ", ".join(one.name for one in struct_fields(message, None if struct is message else struct))
        return FaultError(f"`match.when` has the path `{text}`, which has fields of its own", f"add one of {inner}")
    return None


# --- act


def _act(data: Any) -> acts.Act:
    given = _object(data, "`act`")
    found = _read(given, "act", {**ACTS, **OPTIONS})
    names = [name for name in found if name in ACTS]
    if not names:
        raise FaultError("`act` has no act", f"give one of {', '.join(ACTS)}")
    if len(names) > 1:
        raise FaultError(f"`act` has {len(names)} acts: {', '.join(names)}", "give one; add a fault for each other one")
    name = names[0]
    options = {option: value for option, value in found.items() if option in OPTIONS}
    for option in options:
        if option not in ACTS[name].options:
            owners = [one for one in ACTS if option in ACTS[one].options]
            raise FaultError(f"`{option}` does nothing with `{name}`", f"leave it out; it is for {', '.join(owners)}")
    return _built(name, found[name], options)


def _built(name: str, value: Any, options: Mapping[str, Any]) -> acts.Act:
    after_work = options.get("after_work", False)
    match name:
        case "error":
            is_late = options.get("after_work", value in acts.WORK_DONE_BY)
            return acts.Error(value, is_top=options.get("level", False), after_work=is_late)
        case "delay_ms":
            return acts.Delay(value, options.get("jitter_ms", 0), after_work)
        case "hold":
            return acts.Hold(after_work)
        case "never_answer":
            return acts.NeverAnswer(options.get("reading", True), after_work)
        case "disconnect" | "reset":
            return acts.Disconnect(value, is_reset=name == "reset")
        case "truncate_bytes":
            return acts.Truncate(value)
        case "slice_bytes":
            return acts.Slice(value, options.get("every_ms", 1))
        case "corrupt_batch":
            return acts.Corrupt(value)
        case "throttle_ms":
            return acts.Throttle(value)
        case "blackhole":
            return acts.Blackhole()
        case _:
            return acts.Observe()


# --- together


def _check_together(match: Match, act: acts.Act, served: Collection[ApiKey]) -> None:
    apis = sorted(served if match.apis is None else match.apis)
    listed = ", ".join(API_INFO[key].name for key in apis) if match.apis is not None else "any API"
    for kind in match.named:
        if not any(kind in kinds_of(key) for key in apis):
            named = sorted({one for key in apis for one in kinds_of(key) if one in NAMED})
            fix = f"they name {', '.join(named)}" if named else "leave it out"
            raise FaultError(f"requests of {listed} name no {kind}", fix)
    if isinstance(act, acts.Corrupt) and ApiKey.FETCH not in apis:
        raise FaultError(f"`corrupt_batch` needs batches, which responses of {listed} do not have", "use `api: Fetch`")
    if isinstance(act, acts.Throttle) and not any(_can_throttle(key) for key in apis):
        raise FaultError(f"responses of {listed} have no throttle time", "name another API")


def _can_throttle(key: ApiKey) -> bool:
    return "throttle_time_ms" in API_INFO[key].response_class().__slots__


# --- trigger


def _trigger(found: dict[str, Any]) -> Trigger:
    counts = [name for name in ("nth", "times", "once", "always") if name in found]
    if len(counts) > 1:
        raise FaultError(f"`trigger` has {' and '.join(counts)}, which contradict each other", "give one of them")
    return Trigger(
        nth=found.get("nth"),
        times=1 if "once" in found else found.get("times"),
        skip=found.get("skip", 0),
        probability=found.get("probability", 1.0),
        seed=found.get("seed", 0),
        for_ms=found.get("for_ms"),
    )
