"""Faults: rules that make requests fail, wait, or lose their responses; and handles of all kinds of faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.errors import ControlError
from kpybroker.control.registry import JSON, methods
from kpybroker.control.requests.faults import FaultRules
from kpybroker.control.requests.handles import Handle
from kpybroker.control.requests.predicates import Predicates
from kpybroker.control.rules.errors import FaultError
from kpybroker.control.rules.parse import parse
from kpybroker.control.rules.rule import Rule

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

WAIT_MS_MAX = 600_000


async def add_fault(
    hosted: Hosted,
    act: dict[str, JSON],
    match: dict[str, JSON] | None = None,
    trigger: dict[str, JSON] | None = None,
) -> JSON:
    """Add a fault: requests that `match` get `act` when `trigger` says so. The fields are in the guide to faults."""
    return _added(hosted, [_parsed({"match": match or {}, "act": act, "trigger": trigger or {}})])[0]


async def load_faults(hosted: Hosted, text: str) -> JSON:
    """Add all faults of a text in YAML or JSON: one, a list, or a list under `faults`. All are added, or none."""
    loaded = _loaded(text)
    if isinstance(loaded, dict) and set(loaded) == {"faults"}:
        loaded = loaded["faults"]
    rules = []
    for number, data in enumerate(loaded if isinstance(loaded, list) else [loaded], start=1):
        try:
            rules.append(_parsed(data))
        except ControlError as error:
            raise ControlError(f"fault {number} of the text: {error.cause}", error.fix) from error
    return _added(hosted, rules)


def _parsed(data: JSON) -> Rule:
    try:
        return parse(data, SERVED)
    except FaultError as error:
        raise ControlError(error.cause, error.fix) from error


def _added(hosted: Hosted, rules: list[Rule]) -> list[JSON]:
    return [{"id": hosted.part(FaultRules).add(rule, hosted.clock).id} for rule in rules]


def _loaded(text: str) -> Any:
    """JSON is read as JSON, so that it needs no package."""
    import json

    try:
        return json.loads(text)
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "["):
            raise ControlError(f"the text is not JSON: {error}", "correct it") from error
    try:
        import yaml
    except ImportError as error:
        raise ControlError("YAML needs PyYAML", "pip install 'kpybroker[testing]', or write JSON") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ControlError(f"the text is not YAML: {' '.join(str(error).split())}", "correct it") from error


async def faults(hosted: Hosted) -> JSON:
    """All faults with their rules, hits and states, in the order in which they were added."""
    handles = hosted.part(FaultRules).handles
    return [dict(handles[handle_id].described()) for handle_id in handles.ids]


async def fault(hosted: Hosted, id: int) -> JSON:
    """One fault with its rule, its hits and its state."""
    return dict(_handle(hosted, id).described())


async def remove_fault(hosted: Hosted, id: int) -> JSON:
    """Remove a fault and let what it holds go on; returns its last state."""
    handle = _handle(hosted, id)
    described = dict(handle.described())
    hosted.part(FaultRules).handles.remove(id)
    return described


async def release_fault(hosted: Hosted, id: int, again: bool = False) -> JSON:
    """Let the requests that a fault holds go on. It holds no more, or, with `again`, those that arrive from now on."""
    handle = _handle(hosted, id)
    if not handle.can_hold:
        raise ControlError(f"fault {id} holds nothing", "release one of hold, delay_ms or never_answer", status=409)
    return {"released": handle.release(again=again)}


async def wait_fault(hosted: Hosted, id: int, hits: int = 1, timeout_ms: int = 10_000) -> JSON:
    """Wait until a fault has acted so often in all; returns its hits."""
    handle = _handle(hosted, id)
    with trio.move_on_after(check_timeout("wait_fault", timeout_ms)):
        await handle.hits.wait(hits)
        return {"hits": handle.hits.count}
    raise ControlError(
        f"fault {id} has acted {handle.hits.count} times within {timeout_ms} ms, not {hits} times",
        "look at its `matches`, and at `requests` for what arrived instead",
        status=408,
    )


async def next_predicate(hosted: Hosted, timeout_ms: int = 10_000) -> JSON:
    """Wait for a request about which a rule with `predicate` asks; null if there is none in time."""
    with trio.move_on_after(check_timeout("next_predicate", timeout_ms)):
        question = await hosted.part(Predicates).next()
        return {"id": question.id, "fault": question.fault_id, **question.head, "request": question.request}
    return None


async def answer_predicate(hosted: Hosted, id: int, result: bool) -> JSON:
    """Whether that request matches the rule."""
    if not hosted.part(Predicates).decide(id, result):
        raise ControlError(f"question {id} is not open", "reply within 5 seconds, once", status=409)


def _handle(hosted: Hosted, handle_id: int) -> Handle:
    handles = hosted.part(FaultRules).handles
    try:
        return handles[handle_id]
    except KeyError:
        known = ", ".join(map(str, handles.ids)) or "none"
        raise ControlError(f"there is no fault {handle_id}", f"there are: {known}", status=404) from None


def check_timeout(method: str, timeout_ms: int) -> float:
    """The seconds of a `timeout_ms`. Raises ControlError."""
    if not 0 <= timeout_ms <= WAIT_MS_MAX:
        raise ControlError(f"{method}: `timeout_ms` is {timeout_ms}", f"give 0 to {WAIT_MS_MAX}")
    return timeout_ms / 1000


METHODS = methods(
    add_fault,
    load_faults,
    faults,
    fault,
    remove_fault,
    release_fault,
    wait_fault,
    next_predicate,
    answer_predicate,
)
