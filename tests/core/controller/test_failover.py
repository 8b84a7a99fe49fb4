"""Every procedure is cut before each of its writes, and another controller takes over: the final state is the same.

It is also the same when the response to any one write is lost, and the write is repeated.

Brokers 8 and 9 host nothing; 9 is the controller and dies, 8 follows. Requests that 9 did not respond to are sent to 8,
as clients of a controller do. At the end the tree has the state of an uninterrupted procedure, except for epochs, and
every broker has received it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.core.controller.harness import Harness

WRITES_MAX = 60


@dataclass(frozen=True)
class Procedure:
    """`asks` are requests, retried without a response; `before` and `during` are not. `after` is run at the end."""

    before: tuple[str, ...] = ()
    during: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


TOPICS = ("topic t 0:1,2,3 1:2,3,1 2:3", "topic u 0:2,1")

PROCEDURES = {
    "create": Procedure((), TOPICS),
    "grow": Procedure(TOPICS, ("grow u 1:1,2 2:3,1",)),
    "delete": Procedure(TOPICS, ("delete t",)),
    "delete two": Procedure(TOPICS, ("delete t u",)),
    "a broker dies": Procedure(TOPICS, ("down 2",)),
    "a broker dies for good under a deletion": Procedure(TOPICS, ("down 2", "delete t"), after=("up 2",)),
    "a broker comes back to a deletion": Procedure((*TOPICS, "down 2", "delete t"), ("up 2",)),
    "the only replica comes back": Procedure((*TOPICS, "down 3"), ("up 3",)),
    "a log directory fails": Procedure(TOPICS, ("log-dir-fails 1 t-0 t-1",)),
    "unclean election": Procedure(
        (*TOPICS, "config t unclean.leader.election.enable=true", "isr t-0 1", "isr t-1 1"), ("down 1",)
    ),
    "preferred election by the tree": Procedure(
        (*TOPICS, "down 2", "up 2", "isr u-0 1,2 tell", "isr t-1 3,1,2 tell"), ("preferred u-0 t-1",)
    ),
    "preferred election": Procedure(
        (*TOPICS, "down 2", "up 2", "isr u-0 1,2 tell"), (), ("elect-leaders preferred u-0",)
    ),
    "ISR notification": Procedure(TOPICS, ("isr t-0 1,2 tell",)),
    "AlterPartition": Procedure(TOPICS, (), ("alter 1 t-0 isr=1,2",)),
    "controlled shutdown": Procedure(TOPICS, (), ("shutdown 2",), ("down 2",)),
    "reassignment begins": Procedure(TOPICS, (), ("reassign u-0:3,1",)),
    "reassignment by the tree": Procedure(TOPICS, ("zk-reassign u-0:3,1 t-2:1",)),
    "reassignment ends": Procedure((*TOPICS, "reassign u-0:3,1"), (), ("alter 2 u-0 isr=2,1,3",)),
    "reassignment by the tree ends": Procedure((*TOPICS, "zk-reassign u-0:3,1"), (), ("alter 2 u-0 isr=2,1,3",)),
    "reassignment cancelled": Procedure((*TOPICS, "reassign u-0:3,1"), (), ("reassign u-0:cancel",)),
    "reassignment replaced": Procedure((*TOPICS, "reassign t-2:1"), (), ("reassign t-2:2",)),
    "deletion after reassignment": Procedure((*TOPICS, "reassign t-2:1", "delete t"), (), ("alter 3 t-2 isr=3,1",)),
}


def run_procedure(procedure: Procedure, fault: str | None = None) -> Harness:
    harness = Harness()
    for command in ("up 1 2 3 8 9", "start 9 8", *procedure.before):
        harness.perform(command)
    if fault is not None:
        harness.perform(fault)
    for command in procedure.during:
        harness.perform(command)
    for command in procedure.asks:
        harness.perform(command)
        if "response None" in harness.output:
            harness.perform(command)
    for command in procedure.after:
        harness.perform(command)
    return harness


@pytest.mark.parametrize(
    ("fault", "has_struck"), [("crash-after", "has_crashed"), ("lose-response", "has_lost_a_response")]
)
@pytest.mark.parametrize("name", PROCEDURES)
def test_a_procedure_has_the_same_end_wherever_a_write_fails(name: str, fault: str, has_struck: str) -> None:
    """The controller ends before the write, or the write is done and its response is lost."""
    procedure = PROCEDURES[name]
    undisturbed = run_procedure(procedure)
    undisturbed.check_brokers()
    wanted = undisturbed.outcome()
    for writes in range(WRITES_MAX):
        harness = run_procedure(procedure, f"{fault} 9 {writes}")
        if not getattr(harness, has_struck):
            assert writes > 0, "the procedure writes nothing"
            return
        assert harness.outcome() == wanted, f"{fault} write {writes + 1}:\n" + "\n".join(harness.output)
        harness.check_brokers()
    raise AssertionError("the procedure has no end")
