"""The effects that a procedure yields, and the small procedures that all others are built from.

A procedure yields an `Effect` and is sent the result named at each class. Tree errors of one operation are values, in
the results of `Submit`; a lost session is raised in the procedure.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kpybroker.core import tree as t
from kpybroker.core.controller.model import Transitions
from kpybroker.core.features import SUPPORTED, Ranges
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget

if TYPE_CHECKING:
    from kpybroker.core.controller.events import Event

T = TypeVar("T")
K = TypeVar("K")
S = TypeVar("S")


class Submit(NamedTuple):
    """-> `list[Result | TreeError]`. Pipelined, and repeated after a lost connection until there is a result."""

    ops: Sequence[t.Operation]


class Send(NamedTuple):
    """-> None at once. The broker's queue keeps the order; the response, if any, arrives as an event."""

    broker_id: int
    message: Any
    version: int


class AddBroker(NamedTuple):
    """-> None. Open the ordered queue to a broker."""

    broker_id: int
    registration: znodes.BrokerRegistration


class RemoveBroker(NamedTuple):
    """-> None. Close the queue and drop what is in it."""

    broker_id: int


class Enqueue(NamedTuple):
    """-> None. Put an event at the end of the controller's queue, after a delay if there is one."""

    event: Event
    delay_seconds: float = 0


class Log(NamedTuple):
    """-> None. `logger` is Kafka's logger name, `level` a number of `logging`."""

    logger: str
    level: int
    message: str


class Ask(Enum):
    """Effects without arguments."""

    NOW = "now"
    """-> milliseconds since the epoch."""
    RANDOM_UUID = "random uuid"
    """-> 16 bytes, never one of Kafka's reserved ids."""
    PAUSE = "pause"
    """-> None. A loop has spent its `WorkBudget`: the shell runs other tasks. Only the event queue may change then."""


PAUSE = Ask.PAUSE


class UncleanElectionEnabled(NamedTuple):
    """-> `dict[str, bool]`: `unclean.leader.election.enable` in effect for each topic."""

    topics: tuple[str, ...]


Effect = Ask | Submit | Send | AddBroker | RemoveBroker | Enqueue | Log | UncleanElectionEnabled
Procedure = Generator[Effect, Any, T]

WRITES_TOGETHER = 50
"""Of some hundred bytes each, where a server takes a megabyte in a request."""

CONTROLLER_LOGGER = "kafka.controller.KafkaController"
STATE_CHANGE_LOGGER = "state.change.logger"

ERROR, WARNING, INFO, TRACE = 40, 30, 20, 5
"""Levels of `logging`, which `core` may not import, and Kafka's below them."""


class ControllerMoved(Exception):
    """Another broker is or was the controller: the check of `/controller_epoch` failed."""


class StateChangeFailed(Exception):
    """A partition or replica could not make a transition; the reason goes to the log and to ElectLeaders."""


class Settings(NamedTuple):
    """The configuration that procedures read; none of these keys changes while a broker runs."""

    broker_id: int
    metadata_version: int
    """`inter.broker.protocol.version`, see `kpybroker.core.metadata_version`."""
    inter_broker_listener_name: str
    delete_topic_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_per_broker_percentage: int
    leader_imbalance_check_interval_seconds: int
    features: Ranges = SUPPORTED
    """What this broker supports."""
    finalizes_newest: bool = False
    """A new cluster begins with the newest levels of these features, else with none."""


def info(message: str) -> Log:
    """An effect that logs at INFO."""
    return Log(CONTROLLER_LOGGER, INFO, message)


def warning(message: str) -> Log:
    """An effect that logs at WARNING."""
    return Log(CONTROLLER_LOGGER, WARNING, message)


def error(message: str) -> Log:
    """An effect that logs at ERROR."""
    return Log(CONTROLLER_LOGGER, ERROR, message)


def state_change(settings: Settings, epoch: int, message: str, level: int = INFO) -> Log:
    """An effect that writes a line of Kafka's state change log."""
    return Log(STATE_CHANGE_LOGGER, level, f"[Controller id={settings.broker_id} epoch={epoch}] {message}")


def state_change_failed(settings: Settings, epoch: int, failure: str) -> Log:
    """As `state_change`, for a transition that was not made."""
    return state_change(settings, epoch, f"Controller {settings.broker_id} epoch {epoch} {failure}", ERROR)


def guarded(work: Procedure[T], what: str) -> Procedure[T | Exception]:
    """The result of `work`, or the exception that ended it, logged after `what`. A lost controllership is raised."""
    try:
        return (yield from work)
    except ControllerMoved:
        raise
    except Exception as failure:
        yield error(f"{what}: {failure!r}")
        return failure


def code_of(failure: Exception) -> ErrorCode:
    """What a client receives for a part of its request that ended so: a session that is over is another's role."""
    return ErrorCode.NOT_CONTROLLER if isinstance(failure, t.SessionExpired) else ErrorCode.UNKNOWN_SERVER_ERROR


def split_legal(
    items: Iterable[K], states: dict[K, S], target: S, transitions: Transitions[S], budget: WorkBudget
) -> Procedure[tuple[list[K], list[K]]]:
    """`items` that may become `target`, and those that may not. One that has no state yet gets the first state."""
    allowed, first = transitions.previous[target], transitions.first
    legal: list[K] = []
    illegal: list[K] = []
    for item in items:
        if budget.is_spent():
            yield PAUSE
        (legal if states.setdefault(item, first) in allowed else illegal).append(item)
    return legal, illegal


def submit(ops: Sequence[t.Operation]) -> Procedure[list[t.Result | t.TreeError]]:
    """Perform all; a session that has ended is raised, every other error is a result."""
    if not ops:
        return []
    results: list[t.Result | t.TreeError] = yield Submit(ops)
    for result in results:
        if isinstance(result, t.SessionExpired | t.TreeClosed | t.AuthFailed):
            raise result
    return results


def get(path: str, *, watch: bool = False) -> Procedure[t.NodeData | None]:
    """Data and stat, None when the node is missing."""
    (result,) = yield from submit([t.Get(path, watch)])
    return _found(result)


def get_many(paths: Iterable[str], *, watch: bool = False) -> Procedure[list[t.NodeData | None]]:
    """Data and stat of each path, in order; None where the node is missing."""
    results = yield from submit([t.Get(path, watch) for path in paths])
    return [_found(result) for result in results]


def children(path: str, *, watch: bool = False) -> Procedure[list[str]]:
    """Names, sorted; none when the node is missing."""
    (result,) = yield from submit([t.Children(path, watch)])
    if isinstance(result, t.NoNode):
        return []
    if isinstance(result, t.TreeError):
        raise result
    assert isinstance(result, t.NodeChildren)
    return sorted(result.names)


def exists_with_watch(path: str) -> Procedure[bool]:
    """KafkaZkClient.registerZNodeChangeHandlerAndCheckExistence."""
    (result,) = yield from submit([t.Exists(path, watch=True)])
    if isinstance(result, t.TreeError):
        raise result
    return result is not None


def _found(result: t.Result | t.TreeError) -> t.NodeData | None:
    if isinstance(result, t.NoNode):
        return None
    if isinstance(result, t.TreeError):
        raise result
    assert isinstance(result, t.NodeData)
    return result


def checked(
    ops: Sequence[t.Create | t.SetData | t.Delete], epoch_zk_version: int
) -> Procedure[list[t.PartResult | t.TreeError]]:
    """Perform each write in its own multi that first checks the version of `/controller_epoch`.

    Returns one result a write, errors as values. Raises `ControllerMoved` when a check fails: another controller has
    been elected, and this one may not write to the tree any more (KAFKA-6082).
    """
    check = _check_epoch(epoch_zk_version)
    multis = []
    budget = WorkBudget()
    for op in ops:
        multis.append(t.Multi((check, op)))
        if budget.is_spent():
            yield PAUSE
    outcomes = yield from submit(multis)
    results: list[t.PartResult | t.TreeError] = []
    for outcome in outcomes:
        if budget.is_spent():
            yield PAUSE
        results.append(_write_result(outcome, epoch_zk_version))
    return results


def checked_together(
    ops: Sequence[t.Create | t.SetData], epoch_zk_version: int
) -> Procedure[list[t.PartResult | t.TreeError]]:
    """As `checked`, with WRITES_TOGETHER writes in a multi; where one of them fails, each in its own after all.

    In order: a multi may have failed for want of a node that an earlier one should have made. An ensemble syncs every
    multi, and takes ten times as many writes a second so.
    """
    check = _check_epoch(epoch_zk_version)
    groups = [ops[start : start + WRITES_TOGETHER] for start in range(0, len(ops), WRITES_TOGETHER)]
    outcomes = yield from submit([t.Multi((check, *group)) for group in groups])
    results: list[t.PartResult | t.TreeError] = []
    for group, outcome in zip(groups, outcomes, strict=True):
        if isinstance(outcome, tuple):
            results += outcome[1:]
        elif len(ops) == 1:
            results.append(_write_result(outcome, epoch_zk_version))
        else:
            results += yield from checked(group, epoch_zk_version)
    return results


def _check_epoch(epoch_zk_version: int) -> t.Check:
    return t.Check(znodes.CONTROLLER_EPOCH, epoch_zk_version)


def _write_result(outcome: t.Result | t.TreeError, epoch_zk_version: int) -> t.PartResult | t.TreeError:
    """Of a multi of the check and one write."""
    if isinstance(outcome, t.MultiFailed):
        if outcome.index == 0:
            raise ControllerMoved(f"Controller epoch zkVersion check fails. Expected zkVersion = {epoch_zk_version}")
        return outcome.error
    if isinstance(outcome, t.TreeError):
        return outcome
    assert isinstance(outcome, tuple)
    return outcome[1]


def checked_deletes(paths: Iterable[str], epoch_zk_version: int) -> Procedure[None]:
    """Delete nodes, as `checked`; missing nodes are fine."""
    results = yield from checked([t.Delete(path) for path in paths], epoch_zk_version)
    for result in results:
        if isinstance(result, t.TreeError) and not isinstance(result, t.NoNode):
            raise result
