"""Every procedure is cut before each of its writes, and another controller takes over: the end is the same.

So it is when the answer to any one write is lost, and the write meets its own first run.

Brokers 8 and 9 host nothing; 9 is the controller and dies, 8 follows. Who asked 9 for something and got no answer asks
8, as every client of a controller does. At the end the tree says what it says after an uninterrupted procedure, epochs
aside, and every broker has been told so.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.core.controller.stage import Stage

WRITES_MAX = 60


@dataclass(frozen=True)
class Procedure:
    """`asks`: requests, repeated if they got no answer; `before` and `during` are not. `after` shows what has come."""

    before: tuple[str, ...] = ()
    during: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


TOPICS = ("topic t 0:1,2,3 1:2,3,1 2:3", "topic u 0:2,1")

STORIES = {
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


def play(procedure: Procedure, fault: str | None = None) -> Stage:
    stage = Stage()
    for command in ("up 1 2 3 8 9", "start 9 8", *procedure.before):
        stage.perform(command)
    if fault is not None:
        stage.perform(fault)
    for command in procedure.during:
        stage.perform(command)
    for command in procedure.asks:
        stage.perform(command)
        if "answer None" in stage.output:
            stage.perform(command)
    for command in procedure.after:
        stage.perform(command)
    return stage


@pytest.mark.parametrize("name", STORIES)
def test_it_ends_as_if_nothing_had_happened(name: str) -> None:
    procedure = STORIES[name]
    uninterrupted = play(procedure)
    uninterrupted.check_brokers()
    wanted = uninterrupted.outcome()
    for writes in range(WRITES_MAX):
        stage = play(procedure, f"crash-after 9 {writes}")
        if not stage.has_crashed:
            assert writes > 0, "the procedure writes nothing"
            return
        assert stage.outcome() == wanted, f"cut before write {writes + 1}:\n" + "\n".join(stage.output)
        stage.check_brokers()
    raise AssertionError("the procedure has no end")


@pytest.mark.parametrize("name", STORIES)
def test_a_write_whose_answer_is_lost_counts_once(name: str) -> None:
    procedure = STORIES[name]
    wanted = play(procedure).outcome()
    for writes in range(WRITES_MAX):
        stage = play(procedure, f"lose-answer 9 {writes}")
        if not stage.has_lost_an_answer:
            assert writes > 0, "the procedure writes nothing"
            return
        assert stage.outcome() == wanted, f"answer {writes + 1} lost:\n" + "\n".join(stage.output)
        stage.check_brokers()
    raise AssertionError("the procedure has no end")
