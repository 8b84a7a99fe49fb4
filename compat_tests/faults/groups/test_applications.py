"""Applications: what is done to them in any state, and what becomes of what their members say. Their processes are
played.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat_tests.faults.groups.applications import CLIENTS, GROUPS, Application, Applications
from compat_tests.faults.history import History, Read, Record
from compat_tests.support.groups.ownership import Event, Kind


class Played:
    """A process that notes its orders."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.running = False
        self.has_crashed = False

    def start(self, name: str, **settings: Any) -> None:
        self.running = True
        self.orders.append(f"start {name} {settings['group_protocol']}")

    def close(self, name: str) -> None:
        self.orders.append(f"close {name}")

    def end(self) -> None:
        self.running = self.has_crashed = False

    def pause(self) -> None:
        self.orders.append("pause")

    def resume(self) -> None:
        self.orders.append("resume")


@pytest.fixture
def process() -> Played:
    return Played()


@pytest.fixture
def application(process: Played) -> Application:
    made = Application("a", "java", process, {"topics": "t"})
    made.protocols = {"new": "consumer", "rolled": "classic"}
    return made


def test_it_starts_once_and_again_when_it_was_killed(application: Application, process: Played) -> None:
    application.start()
    application.start()
    assert process.orders == ["start new-a-1 consumer", "start rolled-a-2 classic"]
    application.kill()
    application.kill()
    application.start()
    assert process.orders[2:] == ["start new-a-3 consumer", "start rolled-a-4 classic"]


def test_a_restarted_member_uses_the_other_protocol_also_after_a_kill(
    application: Application, process: Played
) -> None:
    application.start()
    application.restart("rolled", "consumer")
    assert process.orders[2:] == ["close rolled-a-2", "start rolled-a-3 consumer"]
    application.kill()
    application.restart("rolled", "classic")
    assert len(process.orders) == 4
    application.start()
    assert process.orders[4:] == ["start new-a-4 consumer", "start rolled-a-5 classic"]


def test_a_member_that_gave_up_is_replaced_once(application: Application, process: Played) -> None:
    application.start()
    application.replace("new-a-1")
    application.replace("new-a-1")
    application.replace("other-b-7")
    assert process.orders[2:] == ["start new-a-3 consumer"]


@pytest.fixture
def history() -> History:
    return History()


@pytest.fixture
def applications(history: History, tmp_path: Path) -> Applications:
    return Applications(GROUPS, history, "localhost:1", [("t", 0)], tmp_path)


def test_what_members_hand_out_is_read_by_their_group(applications: Applications, history: History) -> None:
    assert len(applications.all) == len(CLIENTS)
    applications._hear(Event("new-x-1", 5, Kind.RECORD, (("t", 0),), 3, "a.17.---"))
    assert applications.counts() == {"new": 1, "old": 0, "rolled": 0}
    (reader,) = [reader for reader in history.readers if reader.name == "the group new"]
    assert reader.reads["t", 0] == [Read(3, Record("a", 17))]
    assert [event.offset for event in applications.groups["new"].events] == [3]


@pytest.mark.parametrize(
    ("member", "error", "is_a_failure"),
    [
        ("rolled-x-1", "KafkaError{code=GROUP_ID_NOT_FOUND}", False),
        ("rolled-x-1", "GroupIdNotFoundException", False),
        ("rolled-x-1", "KafkaException", True),
        ("new-x-1", "GroupIdNotFoundException", True),
    ],
)
def test_only_a_group_that_changed_its_protocol_may_end_a_member(
    applications: Applications, history: History, member: str, error: str, is_a_failure: bool
) -> None:
    applications._hear(Event(member, 5, Kind.FAILED, error=error))
    assert history.failures == ([f"{member} gave up: {error}"] if is_a_failure else [])
    assert applications.given_up == 1
