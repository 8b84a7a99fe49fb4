"""Faults: `broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2)`.

Every method adds one fault and returns its handle, which is also a context manager that removes the fault. The first
argument is the API, by name or key, or several of them; None is any. Keyword arguments select the requests further
(`Selection`) and say when to act (`Timing`); by default the fault acts on every selected request until it is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from kpybroker.testing.fault import Fault

if TYPE_CHECKING:
    import os
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


_TIMING = frozenset(Timing.__annotations__)


class Faults:
    """`broker.faults`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._predicates: Predicates | None = None

    # --- requests

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

    def delay(
        self, api: Api, ms: int, *, jitter_ms: int = 0, after_work: bool = False, **selection: Unpack[Selection]
    ) -> Fault:
        """Wait before the work, or after it."""
        return self._add(api, {"delay_ms": ms, **_if(jitter_ms=jitter_ms, after_work=after_work)}, selection)

    def hold(self, api: Api, *, after_work: bool = False, **selection: Unpack[Selection]) -> Fault:
        """Wait until `release`, or until the fault is removed."""
        return self._add(api, {"hold": True, **_if(after_work=after_work)}, selection)

    def never_answer(self, api: Api, *, after_work: bool = False, **selection: Unpack[Selection]) -> Fault:
        """Send no response, to this request and to later ones on its connection; with `after_work` the work is done."""
        return self._add(api, {"never_answer": True, **_if(after_work=after_work)}, selection)

    def disconnect(self, api: Api, moment: Moment = "before", **selection: Unpack[Selection]) -> Fault:
        """Close the connection, before the work or after it, without a response."""
        return self._add(api, {"disconnect": moment}, selection)

    def reset(self, api: Api, moment: Moment = "before", **selection: Unpack[Selection]) -> Fault:
        """Reset the connection (TCP RST), before the work or after it."""
        return self._add(api, {"reset": moment}, selection)

    def truncate(self, api: Api, size: int, **selection: Unpack[Selection]) -> Fault:
        """Send the first `size` bytes of the response, then close the connection."""
        return self._add(api, {"truncate_bytes": size}, selection)

    def slice(self, api: Api, size: int, *, every_ms: int = 1, **selection: Unpack[Selection]) -> Fault:
        """Send the response in pieces of `size` bytes."""
        return self._add(api, {"slice_bytes": size, "every_ms": every_ms}, selection)

    def corrupt(
        self,
        what: Literal["crc", "length", "magic", "record"] = "crc",
        *,
        api: Api = "Fetch",
        **selection: Unpack[Selection],
    ) -> Fault:
        """Damage a batch in a Fetch response; the log stays as it is."""
        return self._add(api, {"corrupt_batch": what}, selection)

    def throttle(self, api: Api, ms: int, **selection: Unpack[Selection]) -> Fault:
        """Respond with this throttle time."""
        return self._add(api, {"throttle_ms": ms}, selection)

    def blackhole(self, api: Api = None, **selection: Unpack[Selection]) -> Fault:
        """Read and ignore everything that a selected client sends from then on, the request included."""
        return self._add(api, {"blackhole": True}, selection)

    def observe(self, api: Api, **selection: Unpack[Selection]) -> Fault:
        """Only count the requests, for `hits` and `wait`."""
        return self._add(api, {"observe": True}, selection)

    # --- the disk

    def disk_full(
        self, *, broker: int | None = None, path: str = "*", after: int = 0, times: int | None = None
    ) -> Fault:
        """Writes to files that match `path` fail with ENOSPC after so many bytes, so many times."""
        return self._disk(kind="full", broker=broker, path=path, after=after, times=times)

    def slow_fsync(self, ms: int, *, broker: int | None = None, path: str = "*") -> Fault:
        """An fsync takes this much longer."""
        return self._disk(kind="slow_fsync", delay_ms=ms, broker=broker, path=path)

    def io_error(
        self,
        path: str = "*",
        *,
        operations: Sequence[str] = (),
        broker: int | None = None,
        after: int = 0,
        times: int | None = None,
    ) -> Fault:
        """Calls on files that match `path` fail with EIO, after so many that work; `operations`: only "write" ..."""
        named = list(operations) or None
        return self._disk(kind="eio", path=path, operations=named, broker=broker, after=after, times=times)

    def torn_write(self, path: str = "*.log", *, broker: int | None = None) -> Fault:
        """A kill of the broker leaves half of the last write that was not synced."""
        return self._disk(kind="torn_write", path=path, broker=broker)

    def crash_before_fsync(self, *, broker: int | None = None, path: str = "*") -> Fault:
        """A kill of the broker also loses what was written and not synced, as a power cut does."""
        return self._disk(kind="crash_before_fsync", broker=broker, path=path)

    def _disk(self, **arguments: Any) -> Fault:
        return Fault(self._channel, self._channel.call("disk_fault", **arguments)["id"])

    # --- any

    def add(
        self,
        *,
        act: Mapping[str, Any],
        match: Mapping[str, Any] | None = None,
        trigger: Mapping[str, Any] | None = None,
    ) -> Fault:
        """Add a fault in the form that the channel and YAML files have."""
        rule: dict[str, Any] = {"match": dict(match or {}), "act": dict(act), "trigger": dict(trigger or {})}
        return Fault(self._channel, self._channel.call("add_fault", **rule)["id"])

    def load(self, path: str | os.PathLike[str]) -> list[Fault]:
        """Add the faults of a YAML or JSON file."""
        with open(path, encoding="utf-8") as file:
            added = self._channel.call("load_faults", text=file.read())
        return [Fault(self._channel, one["id"]) for one in added]

    def all(self) -> list[Fault]:
        """Every fault there is."""
        return [Fault(self._channel, one["id"]) for one in self._channel.call("faults")]

    def clear(self) -> None:
        """Remove all faults."""
        for fault in self.all():
            fault.remove()

    def _add(self, api: Api, act: dict[str, Any], selection: Selection) -> Fault:
        given = {name: _plain(value) for name, value in selection.items()}
        match = {name: value for name, value in given.items() if name not in _TIMING}
        trigger = {name: value for name, value in given.items() if name in _TIMING}
        if api is not None:
            match["api"] = _plain(api)
        when = match.get("when")
        if not callable(when):
            return self.add(match=match, act=act, trigger=trigger)
        del match["when"]
        if self._predicates is None:
            from kpybroker.testing.running.predicates import Predicates

            self._predicates = Predicates(self._channel)
        rule = {"match": {**match, "predicate": True}, "act": act, "trigger": trigger}
        return Fault(self._channel, *self._predicates.add(rule, when))


def _plain(value: Any) -> Any:
    """Sequences as JSON has them."""
    return list(value) if isinstance(value, (tuple, set, frozenset, range)) else value


def _if(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value}
