"""Seats of strangers: who gives way to whom."""

from __future__ import annotations

import pytest

from kpybroker.core.doors.crowd import Crowd, Seat, network_of


class Room:
    """A crowd, and which connections were closed in it."""

    def __init__(self, seats: int) -> None:
        self.crowd = Crowd(seats)
        self.closed: list[str] = []
        self.seats: dict[str, Seat] = {}

    def enter(self, name: str, address: str, now: float) -> bool:
        seat = self.crowd.enter(address, lambda: self.closed.append(name), now)
        if seat is not None:
            self.seats[name] = seat
        return seat is not None


def test_the_address_with_most_seats_gives_way_with_what_waited_longest() -> None:
    room = Room(4)
    for now, (name, address) in enumerate((("old", "10.0.0.1"), ("a", "9.9.9.9"), ("b", "9.9.9.9"), ("c", "9.9.9.9"))):
        assert room.enter(name, address, now)
    assert room.enter("new", "10.0.0.2", 10)
    assert room.closed == ["a"]
    assert room.enter("d", "9.9.9.9", 11)
    assert room.closed == ["a", "b"]
    assert len(room.crowd) == 4


def test_one_that_is_served_keeps_its_seat_and_if_all_are_there_is_none() -> None:
    room = Room(2)
    for name in ("a", "b"):
        room.enter(name, "10.0.0.1", 0)
        room.seats[name].be_busy()
    assert not room.enter("c", "10.0.0.1", 1)
    room.seats["b"].wait(2)
    assert room.enter("c", "10.0.0.1", 3)
    assert room.closed == ["b"]


def test_who_was_heard_last_is_the_last_to_give_way() -> None:
    room = Room(2)
    room.enter("a", "10.0.0.1", 0)
    room.enter("b", "10.0.0.1", 1)
    room.seats["a"].wait(2)
    room.enter("c", "10.0.0.1", 3)
    assert room.closed == ["b"]


def test_a_stranger_who_opens_any_number_never_closes_those_of_others() -> None:
    room = Room(10)
    for number in range(3):
        room.enter(f"own-{number}", f"10.0.0.{number}", number)
    for number in range(1_000):
        assert room.enter(f"flood-{number}", "9.9.9.9", 10 + number)
    assert not any(name.startswith("own") for name in room.closed)
    assert len(room.crowd) == 10


def test_a_seat_is_left_once() -> None:
    room = Room(1)
    room.enter("a", "10.0.0.1", 0)
    for _ in range(2):
        room.crowd.leave(room.seats["a"])
    assert len(room.crowd) == 0
    assert room.enter("b", "10.0.0.1", 1)
    assert room.closed == []


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("10.1.2.3:50123", "10.1.2.3"),
        ("[2001:db8:1:2:3:4:5:6]:50123", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::/64"),
        ("10.1.2.3:a", "10.1.2.3:a"),
        ("[::", "[::"),
        ("a socket's path", "a socket's path"),
        ("", ""),
    ],
)
def test_what_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network
