"""kazoo's sockets: every byte arrives once and in order, and nothing waits while there is something to do."""

from __future__ import annotations

import select
import socket
import threading

import pytest

from kpybroker.coordination.kazoo_sockets import (
    RECEIVE_BYTES,
    SENT_MAX,
    ServerSocket,
    known_ready,
    known_room,
    wake_pair,
)


def connected() -> tuple[ServerSocket, socket.socket]:
    ours, theirs = socket.socketpair()
    return ServerSocket(ours), theirs


def is_readable(one: socket.socket) -> bool:
    return bool(select.select([one], [], [], 0)[0])


def test_what_there_is_is_read_at_once_and_handed_out_as_it_is_wanted() -> None:
    ours, theirs = connected()
    with ours, theirs:
        theirs.sendall(b"abcdefgh")
        assert (ours.pending(), known_ready([ours])) == (0, [])
        assert ours.recv(3) == b"abc"
        assert (ours.pending(), known_ready([ours]), is_readable(ours)) == (5, [ours], False)
        assert ours.recv(100) == b"defgh"
        assert (ours.pending(), known_ready([ours])) == (0, [])


def test_more_than_is_read_at_once() -> None:
    ours, theirs = connected()
    sent = bytes(range(256)) * (RECEIVE_BYTES // 64)
    with ours, theirs:
        sender = threading.Thread(target=theirs.sendall, args=(sent,))
        sender.start()
        received = b""
        while len(received) < len(sent):
            received += ours.recv(1000)
        sender.join()
        assert received == sent


def test_the_end_of_a_connection_is_read_after_what_came_before_it() -> None:
    ours, theirs = connected()
    with ours:
        theirs.sendall(b"ab")
        theirs.close()
        assert [ours.recv(1), ours.recv(1), ours.recv(1)] == [b"a", b"b", b""]


def test_a_send_without_room_waits_for_it() -> None:
    ours, theirs = connected()
    with ours, theirs:
        ours.setblocking(False)
        part = bytes(RECEIVE_BYTES)
        sent = 0
        assert known_room([ours])
        while known_room([ours]):
            sent += ours.send(part)
        reader = threading.Thread(target=lambda: [theirs.recv(RECEIVE_BYTES) for _ in range(5)])
        reader.start()
        assert ours.send(part) > 0
        reader.join()
        assert ours.gettimeout() == 0


def test_a_connection_keeps_its_timeout() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(7)
    with ServerSocket(ours) as taken, theirs:
        assert taken.gettimeout() == 7


def test_a_socket_of_another_kind_is_waited_for() -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b"a")
        assert known_ready([one]) == []
        assert not known_room([one])


def test_one_byte_wakes_for_all_requests_that_wait() -> None:
    reader, writer = wake_pair()
    with reader, writer:
        reader.setblocking(False)
        for _ in range(3):
            writer.send(b"\0")
        assert (reader.pending(), known_ready([reader])) == (3, [reader])
        for left in (2, 1):
            reader.recv(1)
            assert (reader.pending(), is_readable(reader)) == (left, True)
        reader.recv(1)
        assert (reader.pending(), is_readable(reader), known_ready([reader])) == (0, False, [])
        with pytest.raises(BlockingIOError):
            reader.recv(1)
        writer.send(b"\0")
        assert (reader.pending(), is_readable(reader)) == (1, True)


def test_the_connection_is_looked_at_between_many_requests() -> None:
    reader, writer = wake_pair()
    with reader, writer:
        for _ in range(3 * SENT_MAX):
            writer.send(b"\0")
        looks = []
        for number in range(3 * SENT_MAX):
            if not known_ready([reader]):
                looks.append(number)
            reader.recv(1)
        assert looks == [SENT_MAX, 2 * SENT_MAX]


def test_no_request_is_forgotten_when_two_threads_meet() -> None:
    reader, writer = wake_pair()
    requests = 20_000
    with reader, writer:
        sender = threading.Thread(target=lambda: [writer.send(b"\0") for _ in range(requests)])
        sender.start()
        for _ in range(requests):
            if not reader.pending():
                select.select([reader], [], [], None)
            reader.recv(1)
        sender.join()
        assert (reader.pending(), is_readable(reader)) == (0, False)
