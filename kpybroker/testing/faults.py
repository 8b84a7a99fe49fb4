"""Faults: `broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2)`.

Every method adds one fault and returns its handle, which is also a context manager that removes the fault. The first
argument is the API, by name or key, or several of them; None is any. Keyword arguments select the requests further
(`Selection`) and say when to act (`Timing`); by default the fault acts on every selected request until it is removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from kpybroker.testing.checking import files, kinds
from kpybroker.testing.checking.calls import Kind, anything, checked
from kpybroker.testing.errors import UsageError
from kpybroker.testing.fault import Fault, Handles

if TYPE_CHECKING:
    from typing import Unpack

    from kpybroker.testing.running.channel import Channel
    from kpybroker.testing.running.predicates import Predicates

Api = str | int | Sequence[str | int] | None
Text = str | Sequence[str]
Number = int | Sequence[int]
Moment = Literal["before", "after"]


class Timing(TypedDict, total=False):
    """When to act on the requests that are selected."""

    once: bool
    nth: int
    times: int
    skip: int
    probability: float
    seed: int
    for_ms: int


class Selection(Timing, total=False):
    """Which requests. All that is given must match. A text may have `*` and `?`; a sequence means any of its items.

    `version` is one version, or a range of two. `when` is a predicate on the decoded request (a mapping with Kafka's
    names in snake_case), or a mapping of a path to a value: `{"topics.partitions.index": 3}`.

    `expect_unused`: it is no failure of the test if the fault never acts.
    """

    version: int | Sequence[int]
    broker: Number
    client_id: Text
    principal: Text
    topic: Text
    topic_id: Text
    partition: Number
    group: Text
    transactional_id: Text
    listener: Text
    when: Mapping[str, Any] | Callable[[Mapping[str, Any]], object]
    expect_unused: bool


_TIMING = frozenset(Timing.__annotations__)
_APIS: Final = kinds.optional(kinds.one_or_each(kinds.api, "names of APIs"))
_TEXTS: Final = kinds.one_or_each(kinds.text, "texts")
_NUMBERS: Final = kinds.one_or_each(kinds.index, "numbers")
_MOMENT: Final = kinds.one_of("before", "after")
_DAMAGE: Final = kinds.one_of("crc", "length", "magic", "record")
_TIMES: Final = kinds.optional(kinds.count)
_MS: Final = kinds.integer(0, 2**31 - 1)
_DISK_BROKER: Final = kinds.optional(kinds.index)
_PART: Final = kinds.mapping(kinds.text, anything, "a mapping of fields to values")
SELECTION: Final[Mapping[str, Kind]] = {
    "once": kinds.flag,
    "nth": kinds.count,
    "times": kinds.count,
    "skip": _MS,
    "probability": kinds.number(0, 1),
    "seed": _MS,
    "for_ms": kinds.count,
    "version": kinds.one_or_each(kinds.index, "versions"),
    "broker": _NUMBERS,
    "client_id": _TEXTS,
    "principal": _TEXTS,
    "topic": _TEXTS,
    "topic_id": _TEXTS,
    "partition": _NUMBERS,
    "group": _TEXTS,
    "transactional_id": _TEXTS,
    "listener": _TEXTS,
    "when": kinds.predicate,
    "expect_unused": kinds.flag,
}
"""The kinds of `Selection`."""


class Faults:
    """`broker.faults`."""

    def __init__(self, channel: Channel, handles: Handles) -> None:
        self._channel = channel
        self._handles = handles
        self._predicates: Predicates | None = None

    def __getitem__(self, fault_id: int) -> Fault:
        """The handle of the fault with this id."""
        return self._handles[fault_id]

    # --- requests

    @checked(SELECTION, api=_APIS, error=kinds.error, top_level=kinds.flag, after_work=kinds.optional(kinds.flag))
    def error(
        self,
        api: Api,
        error: str,
        *,
        top_level: bool = False,
        after_work: bool | None = None,
        **selection: Unpack[Selection],
    ) -> Fault:
        """Respond with an error of Kafka, for what is selected in the request; the rest of the request stays real.

        `top_level`: for the request as a whole. `after_work`: do the work first, which is the default for errors that
        say so (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND).
        """
        act: dict[str, Any] = {"error": error}
        if top_level:
            act["level"] = "top"
        if after_work is not None:
            act["after_work"] = after_work
        return self._add(api, act, selection)

    @checked(SELECTION, api=_APIS, ms=_MS, jitter_ms=_MS, after_work=kinds.flag)
    def delay(
        self, api: Api, ms: int, *, jitter_ms: int = 0, after_work: bool = False, **selection: Unpack[Selection]
    ) -> Fault:
        """Wait before the work, or after it."""
        return self._add(api, {"delay_ms": ms, **_if(jitter_ms=jitter_ms, after_work=after_work)}, selection)

    @checked(SELECTION, api=_APIS, after_work=kinds.flag)
    def hold(self, api: Api, *, after_work: bool = False, **selection: Unpack[Selection]) -> Fault:
        """Wait until `release`, or until the fault is removed."""
        return self._add(api, {"hold": True, **_if(after_work=after_work)}, selection)

    @checked(SELECTION, api=_APIS, after_work=kinds.flag)
    def never_answer(self, api: Api, *, after_work: bool = False, **selection: Unpack[Selection]) -> Fault:
        """Send no response, to this request and to later ones on its connection; with `after_work` the work is done."""
        return self._add(api, {"never_answer": True, **_if(after_work=after_work)}, selection)

    @checked(SELECTION, api=_APIS, moment=_MOMENT)
    def disconnect(self, api: Api, moment: Moment = "before", **selection: Unpack[Selection]) -> Fault:
        """Close the connection, before the work or after it, without a response."""
        return self._add(api, {"disconnect": moment}, selection)

    @checked(SELECTION, api=_APIS, moment=_MOMENT)
    def reset(self, api: Api, moment: Moment = "before", **selection: Unpack[Selection]) -> Fault:
        """Reset the connection (TCP RST), before the work or after it."""
        return self._add(api, {"reset": moment}, selection)

    @checked(SELECTION, api=_APIS, size=_MS)
    def truncate(self, api: Api, size: int, **selection: Unpack[Selection]) -> Fault:
        """Send the first `size` bytes of the response, then close the connection."""
        return self._add(api, {"truncate_bytes": size}, selection)

    @checked(SELECTION, api=_APIS, size=kinds.count, every_ms=_MS)
    def slice(self, api: Api, size: int, *, every_ms: int = 1, **selection: Unpack[Selection]) -> Fault:
        """Send the response in pieces of `size` bytes."""
        return self._add(api, {"slice_bytes": size, "every_ms": every_ms}, selection)

    @checked(SELECTION, what=_DAMAGE, api=_APIS)
    def corrupt(
        self,
        what: Literal["crc", "length", "magic", "record"] = "crc",
        *,
        api: Api = "Fetch",
        **selection: Unpack[Selection],
    ) -> Fault:
        """Damage a batch in a Fetch response; the log stays as it is."""
        return self._add(api, {"corrupt_batch": what}, selection)

    @checked(SELECTION, api=_APIS, ms=_MS)
    def throttle(self, api: Api, ms: int, **selection: Unpack[Selection]) -> Fault:
        """Respond with this throttle time."""
        return self._add(api, {"throttle_ms": ms}, selection)

    @checked(SELECTION, api=_APIS)
    def blackhole(self, api: Api = None, **selection: Unpack[Selection]) -> Fault:
        """Read and ignore everything that a selected client sends from then on, the request included."""
        return self._add(api, {"blackhole": True}, selection)

    @checked(SELECTION, api=_APIS)
    def observe(self, api: Api, **selection: Unpack[Selection]) -> Fault:
        """Only count the requests, for `hits` and `wait`."""
        return self._add(api, {"observe": True}, selection)

    # --- the disk

    @checked(broker=_DISK_BROKER, path=kinds.text, after=kinds.offset, times=_TIMES, expect_unused=kinds.flag)
    def disk_full(
        self,
        *,
        broker: int | None = None,
        path: str = "*",
        after: int = 0,
        times: int | None = None,
        expect_unused: bool = False,
    ) -> Fault:
        """Writes to files that match `path` fail with ENOSPC after so many bytes, so many times."""
        return self._disk(expect_unused, kind="full", broker=broker, path=path, after=after, times=times)

    @checked(ms=kinds.count, broker=_DISK_BROKER, path=kinds.text, expect_unused=kinds.flag)
    def slow_fsync(self, ms: int, *, broker: int | None = None, path: str = "*", expect_unused: bool = False) -> Fault:
        """An fsync takes this much longer."""
        return self._disk(expect_unused, kind="slow_fsync", delay_ms=ms, broker=broker, path=path)

    @checked(
        path=kinds.text,
        operations=kinds.each(kinds.text, "names of operations"),
        broker=_DISK_BROKER,
        after=kinds.offset,
        times=_TIMES,
        expect_unused=kinds.flag,
    )
    def io_error(
        self,
        path: str = "*",
        *,
        operations: Sequence[str] = (),
        broker: int | None = None,
        after: int = 0,
        times: int | None = None,
        expect_unused: bool = False,
    ) -> Fault:
        """Calls on files that match `path` fail with EIO, after so many that work; `operations`: only "write" ..."""
        named = list(operations) or None
        found = {"path": path, "operations": named, "broker": broker, "after": after, "times": times}
        return self._disk(expect_unused, kind="eio", **found)

    @checked(path=kinds.text, broker=_DISK_BROKER, expect_unused=kinds.flag)
    def torn_write(self, path: str = "*.log", *, broker: int | None = None, expect_unused: bool = False) -> Fault:
        """A kill of the broker leaves half of the last write that was not synced."""
        return self._disk(expect_unused, kind="torn_write", path=path, broker=broker)

    @checked(path=kinds.text, broker=_DISK_BROKER, expect_unused=kinds.flag)
    def crash_before_fsync(self, *, broker: int | None = None, path: str = "*", expect_unused: bool = False) -> Fault:
        """A kill of the broker also loses what was written and not synced, as a power cut does."""
        return self._disk(expect_unused, kind="crash_before_fsync", broker=broker, path=path)

    def _disk(self, expect_unused: bool, /, **arguments: Any) -> Fault:
        return self._made(self._channel.call("disk_fault", **arguments)["id"], expect_unused)

    # --- any

    @checked(act=_PART, match=kinds.optional(_PART), trigger=kinds.optional(_PART), expect_unused=kinds.flag)
    def add(
        self,
        *,
        act: Mapping[str, Any],
        match: Mapping[str, Any] | None = None,
        trigger: Mapping[str, Any] | None = None,
        expect_unused: bool = False,
    ) -> Fault:
        """Add a fault in the form that the channel and YAML files have."""
        rule: dict[str, Any] = {"match": dict(match or {}), "act": dict(act), "trigger": dict(trigger or {})}
        return self._made(self._channel.call("add_fault", **rule)["id"], expect_unused)

    @checked(path=kinds.path, expect_unused=kinds.flag)
    def load(self, path: str | os.PathLike[str], *, expect_unused: bool = False) -> list[Fault]:
        """Add the faults of a YAML or JSON file."""
        text = files.read(path)
        try:
            added = self._channel.call("load_faults", text=text)
        except UsageError as error:
            raise type(error)(f"{os.fspath(path)}: {error.cause}", error.fix) from None
        if not added:
            raise UsageError(f"{os.fspath(path)} has no faults", "write one, or a list of them under `faults`")
        return [self._made(one["id"], expect_unused) for one in added]

    @checked()
    def all(self) -> list[Fault]:
        """Every fault there is."""
        return [self._handles[one["id"]] for one in self._channel.call("faults")]

    @checked()
    def clear(self) -> None:
        """Remove all faults."""
        for fault in self.all():
            fault.remove()

    @checked()
    def clear_others(self) -> None:
        """Remove the faults that other programs have added, by the control channel."""
        for fault in self.all():
            if fault.id not in self._handles:
                fault.remove()

    def _add(self, api: Api, act: dict[str, Any], selection: Selection) -> Fault:
        given = {name: _plain(value) for name, value in selection.items() if (name, value) != ("once", False)}
        expect_unused = bool(given.pop("expect_unused", False))
        match = {name: value for name, value in given.items() if name not in _TIMING}
        trigger = {name: value for name, value in given.items() if name in _TIMING}
        if api is not None:
            match["api"] = _plain(api)
        when = match.pop("when", None)
        try:
            if not callable(when):
                if when is not None:
                    match["when"] = when
                return self._made(
                    self._channel.call("add_fault", match=match, act=act, trigger=trigger)["id"], expect_unused
                )
            if self._predicates is None:
                self._predicates = self._new_predicates()
            rule = {"match": {**match, "predicate": True}, "act": act, "trigger": trigger}
            return self._made(self._predicates.add(rule, when), expect_unused)
        except UsageError as error:
            raise type(error)(_as_python(error.cause), _as_python(error.fix)) from None

    def _new_predicates(self) -> Predicates:
        from kpybroker.testing.running.predicates import Predicates

        return Predicates(self._channel, lambda fault_id, error: self._handles[fault_id].failed(error))

    def _made(self, fault_id: int, expect_unused: bool) -> Fault:
        fault = self._handles[fault_id]
        fault.expect_unused = expect_unused
        return fault


def _plain(value: Any) -> Any:
    """Sequences as JSON has them."""
    return list(value) if isinstance(value, (tuple, set, frozenset, range)) else value


def _as_python(text: str) -> str:
    """An error of the rules, which have parts, as one of a call, which has only arguments."""
    for part in ("match.", "act.", "trigger."):
        text = text.replace(f"`{part}", "`")
    return text


def _if(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value}
