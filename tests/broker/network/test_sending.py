"""A response leaves as far as it can without waiting, and says what it waits for."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpybroker.broker.network import sending
from kpybroker.broker.network.sending import GATHERED_BYTES, SMALL_SLICE_BYTES, Part, Progress, Sending
from tests.support.storage.file_slice import Slice

CONTENT = random.Random(3).randbytes(600_000)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "segment").write_bytes(CONTENT)
    opened = os.open(tmp_path / "segment", os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield near, far


def receive(far: socket.socket) -> bytes:
    received = bytearray()
    try:
        while data := far.recv(1 << 20):
            received += data
    except BlockingIOError:
        pass
    return bytes(received)


def drain(response: Sending, far: socket.socket) -> tuple[bytes, list[Progress]]:
    """All of it, by a client that reads whenever the socket takes no more."""
    received = b""
    stops: list[Progress] = []
    while (progress := response.resume()) is not Progress.SENT:
        stops.append(progress)
        received += receive(far)
        if progress is Progress.COLD:
            response.warm()
    return received + receive(far), stops


def test_a_full_socket_is_no_end(pair: tuple[socket.socket, socket.socket], descriptor: int) -> None:
    near, far = pair
    parts: list[Part] = [b"head", Slice(descriptor, 10, 500_000), b"", Slice(descriptor, 0, 100), b"x" * 300_000]
    received, stops = drain(Sending(near, parts), far)
    assert received == b"head" + CONTENT[10:500_010] + CONTENT[:100] + b"x" * 300_000
    assert stops
    assert set(stops) == {Progress.FULL}


def test_others_are_served_though_the_socket_takes_more(
    pair: tuple[socket.socket, socket.socket], descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "SLICE_BYTES", 10_000)
    monkeypatch.setattr(sending, "SENDFILE_STEP_BYTES", 10_000)
    near, far = pair
    response = Sending(near, [Slice(descriptor, 0, 50_000)])
    for turn in range(1, 5):
        assert response.resume() is Progress.FULL
        assert len(receive(far)) == 10_000, turn
    assert response.resume() is Progress.SENT


@pytest.mark.parametrize("sizes", [[500_000], [100, 200, 500_000], [300_000, 50]])
def test_what_is_cold_is_read_first_and_leaves_in_its_place(
    pair: tuple[socket.socket, socket.socket], descriptor: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_is_warm", lambda *_: False)
    monkeypatch.setattr(sending, "read_warm", lambda *_: None)
    near, far = pair
    parts: list[Part] = [part for size in sizes for part in (b"%d:" % size, Slice(descriptor, 7, size))]
    received, stops = drain(Sending(near, parts), far)
    assert received == b"".join(b"%d:" % size + CONTENT[7 : 7 + size] for size in sizes)
    steps = sum(-(-size // sending.SENDFILE_STEP_BYTES) if size > SMALL_SLICE_BYTES else 1 for size in sizes)
    assert stops.count(Progress.COLD) == steps


def test_many_small_slices_are_not_all_in_memory_at_once(
    pair: tuple[socket.socket, socket.socket], descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def count(part: Slice, offset: int, size: int) -> bytes:
        read.append(size)
        return part.read(offset, size)

    monkeypatch.setattr(sending, "read_warm", count)
    near, far = pair
    response = Sending(near, [Slice(descriptor, n, SMALL_SLICE_BYTES) for n in range(100)])
    assert response.resume() is Progress.FULL
    assert sum(read) <= 2 * GATHERED_BYTES + len(receive(far))
    drain(response, far)
    assert len(read) == 100


def test_a_slice_longer_than_its_file_and_a_client_that_has_gone_are_errors(
    pair: tuple[socket.socket, socket.socket], descriptor: int
) -> None:
    near, far = pair
    with pytest.raises(OSError, match="shorter than the slice"):
        drain(Sending(near, [Slice(descriptor, 0, len(CONTENT) + 1)]), far)
    far.close()
    with pytest.raises(OSError, match="Broken pipe"):
        Sending(near, [Slice(descriptor, 0, 100_000)]).resume()
