"""The handle of a fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kpybroker.testing.checking import kinds, unused
from kpybroker.testing.checking.calls import checked
from kpybroker.testing.errors import TestingError, UnusedFault, UsageError
from kpybroker.testing.waiting import WAIT_S

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from kpybroker.testing.running.channel import Channel

UNCOUNTED: Final = frozenset(("shrink_isr", "lag_follower"))
"""Faults that act when they are made, or not on requests: they have no hits."""


class Fault:
    """As a context manager it is removed at the end of the block.

    It ends with its test in any case. One that never acted until then fails the test, unless it was made with
    `expect_unused=True`.
    """

    def __init__(self, channel: Channel, fault_id: int) -> None:
        self._channel = channel
        self._failures: list[BaseException] = []
        self._at_end: Mapping[str, Any] | None = None
        self._is_reported = False
        self._place = unused.place()
        self.expect_unused = False
        self.id = fault_id

    @property
    def channel(self) -> Channel:
        """That of its broker."""
        return self._channel

    @property
    def hits(self) -> int:
        """How many requests it has acted on; of a fault of the disk, how many calls."""
        hits: int = self.status()["hits"]
        return hits

    @checked()
    def status(self) -> Mapping[str, Any]:
        """Everything that is known of it: its rule, its hits, its state; after `remove`, as it was then."""
        self._raise_failure()
        if self._at_end is None:
            return self.read()
        if "hits" not in self._at_end:
            raise UsageError(f"fault {self.id} was removed by another program", "its hits are not known")
        return self._at_end

    def read(self) -> Mapping[str, Any]:
        """Its state in the broker, now."""
        state: Mapping[str, Any] = self._channel.call("fault", id=self.id)
        return state

    @checked(hits=kinds.count, timeout=kinds.timeout)
    def wait(self, hits: int = 1, timeout: float = WAIT_S) -> None:
        """Return once it has acted on so many requests. Raises WaitTimeout after `timeout` seconds."""
        try:
            self._channel.call("wait_fault", wait_s=timeout, id=self.id, hits=hits, timeout_ms=round(timeout * 1000))
        finally:
            self._raise_failure()

    @checked(again=kinds.flag)
    def release(self, *, again: bool = False) -> None:
        """Let what it holds go on. It holds no more, or, with `again`, what arrives from now on."""
        self._channel.call("release_fault", id=self.id, again=again)

    @checked()
    def remove(self) -> None:
        """Remove it; what it holds goes on. Removing it again, or after `reset`, does nothing."""
        if self._at_end is None:
            try:
                self._at_end = self._channel.call("remove_fault", id=self.id)
            except UsageError:
                self._at_end = {"id": self.id}  # it went with all others

    def ended(self, state: Mapping[str, Any]) -> None:
        """It is about to be removed together with others; this is its last state."""
        if self._at_end is None:
            self._at_end = state

    @property
    def is_over(self) -> bool:
        """Whether it was removed, or its broker has ended."""
        return self._at_end is not None

    def failed(self, error: BaseException) -> None:
        """Its predicate raised, or did not decide."""
        self._failures.append(error)

    def problem(self) -> TestingError | None:
        """What is to be reported about it, once it has been removed; only once."""
        if self._is_reported:
            return None
        self._is_reported = True
        try:
            self._raise_failure()
        except TestingError as error:
            return error
        state = self._at_end or {}
        if state.get("undecided"):
            cause = f"the predicate of fault {self.id} did not decide about {state['undecided']} requests in time"
            return TestingError(cause, "let it be quick, and use no client of this broker")
        if self.expect_unused or state.get("hits") != 0 or not UNCOUNTED.isdisjoint(state):
            return None
        selected = state.get("matches", 0)
        why = f"it selected {selected} requests, but its trigger let them pass" if selected else "nothing matched it"
        cause = f"fault {self.id}, {_text(state)}, made at {self._place}, has never acted: {why}"
        return UnusedFault(cause, _fix(self._channel, state))

    def _raise_failure(self) -> None:
        if self._failures:
            self._is_reported = True
            error = self._failures[0]
            cause = f"the predicate of fault {self.id} failed: {type(error).__name__}: {error}"
            raise TestingError(cause, "the request counted as one that it does not select") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
        if error is None:
            problem = self.problem()
            unused.taken(lambda fault: fault is self)
            if problem is not None:
                unused.report([problem])

    def __repr__(self) -> str:
        return f"<Fault {self.id}>"


class Lever:
    """What holds back something else than requests: capped versions, a pause, a network that is cut. It ends as faults
    do, and is not reported.
    """

    def __init__(self, channel: Channel, undo: str, arguments: Mapping[str, Any]) -> None:
        self.channel = channel
        self._undo = undo
        self._arguments = arguments
        self.is_over = False

    def remove(self) -> None:
        """Undo it, unless its broker has ended; what was undone before stays so."""
        if not self.is_over:
            self.is_over = True
            self.channel.call(self._undo, **self._arguments)

    def problem(self) -> None:
        """There is nothing to report."""


class Handles:
    """The handles of one broker's faults, by id. Those that this process makes are noted, to be settled in the end."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._by_id: dict[int, Fault] = {}
        self._levers: list[Lever] = []
        channel.on_made = self._note
        channel.on_held = self._note_lever

    def _note(self, fault_id: int) -> None:
        self._by_id[fault_id] = fault = Fault(self._channel, fault_id)
        unused.note(fault)

    def _note_lever(self, undo: str, arguments: Mapping[str, Any]) -> None:
        self._levers = [one for one in self._levers if not one.is_over]
        self._levers.append(Lever(self._channel, undo, arguments))
        unused.note(self._levers[-1])

    def __getitem__(self, fault_id: int) -> Fault:
        """That of a fault; one that another program made ends only when it is removed."""
        return self._by_id.get(fault_id) or Fault(self._channel, fault_id)

    def __contains__(self, fault_id: int) -> bool:
        """Whether this process made it."""
        return fault_id in self._by_id

    def end(self) -> None:
        """The broker is about to end: there is nothing to undo, and what is known of its faults is kept."""
        for lever in self._levers:
            lever.is_over = True
        self.capture()

    def capture(self) -> None:
        """All faults are about to be removed at once: keep what is known of those that were made here."""
        if any(not fault.is_over for fault in self._by_id.values()):
            for state in self._channel.call("faults"):
                if state["id"] in self._by_id:
                    self._by_id[state["id"]].ended(state)


def _text(state: Mapping[str, Any]) -> str:
    """Its rule, in short."""
    import json

    rule = {name: value for name, value in state.items() if name in ("match", "act", "trigger", "disk") and value}
    return json.dumps(rule, default=str)


def _fix(channel: Channel, state: Mapping[str, Any]) -> str:
    """With the topic or group that may have been meant, if the named one does not exist."""
    match = state.get("match") or {}
    for what, listed, field in (("topic", "topics", "name"), ("group", "groups", "group_id")):
        named = match.get(what)
        if isinstance(named, str) and not set("*?") & set(named):
            try:
                known = [one[field] for one in channel.call(listed)]
            except TestingError:
                continue
            if named not in known:
                return f"there is no {what} {named!r}: {_nearest(named, known)}, or say expect_unused=True"
    return "let the test make such a request before its end, select others, or say expect_unused=True"


def _nearest(name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}" if near else "create it, or name another"
