"""Frames come out whole however the bytes arrive, and no claimed size is believed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpybroker.broker.network.frames import GROWTH_BYTES_MIN, SMALL_FRAME_BYTES_MAX, FrameReader
from kpybroker.broker.network.request_memory import KEPT_BUFFERS_MAX, ReceiveBuffers, RequestMemory
from kpybroker.broker.network.sending import Part
from kpybroker.wire.errors import ProtocolError
from tests.support.examples import examples

T = TypeVar("T")


class PiecewiseStream:
    """Delivers the given pieces, one a receive, then the end of the stream."""

    local_address = ("127.0.0.1", 9092)
    remote_address = ("127.0.0.1", 1)

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = list(pieces)

    async def receive_into(self, buffer: memoryview) -> int:
        if not self.pieces:
            return 0
        piece = self.pieces[0][: len(buffer)]
        rest = self.pieces[0][len(piece) :]
        self.pieces[:1] = [rest] if rest else []
        buffer[: len(piece)] = piece
        return len(piece)

    def receive_now(self, buffer: memoryview) -> int:
        return run(self.receive_into(buffer))

    async def send_parts(self, parts: list[Part]) -> None:
        raise AssertionError("nothing is sent here")

    def close(self) -> None:
        self.pieces = []


def reader(
    pieces: list[bytes],
    *,
    scratch: int = 64,
    large: int = 1 << 30,
    frame_bytes_max: int = 100 * 1024 * 1024,
    memory: RequestMemory | None = None,
) -> FrameReader:
    stream: Any = PiecewiseStream(pieces)
    memory = memory or RequestMemory(-1)
    return FrameReader(stream, ReceiveBuffers(scratch, large), frame_bytes_max, memory)


def reader_of(data: bytes, cuts: list[int], scratch: int, large: int) -> FrameReader:
    pieces, position, turn = [], 0, 0
    while position < len(data):
        step = cuts[turn % len(cuts)]
        pieces.append(data[position : position + step])
        position, turn = position + step, turn + 1
    return reader(pieces, scratch=scratch, large=large)


def framed(bodies: list[bytes]) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def drain(frames: FrameReader) -> list[bytes]:
    """Run the coroutine without a loop: nothing in it ever waits."""

    async def all_frames() -> list[bytes]:
        found = []
        while (frame := await frames.next_frame()) is not None:
            found.append(bytes(frame))
        return found

    return run(all_frames())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("waited for something")


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.binary(max_size=300), max_size=6),
    st.lists(st.integers(1, 40), min_size=1),
    st.integers(8, 128),
    st.integers(2, 400),
)
def test_frames_are_the_same_however_they_are_cut(
    bodies: list[bytes], cuts: list[int], scratch: int, large: int
) -> None:
    assert drain(reader_of(framed(bodies), cuts, scratch, large)) == bodies


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.binary(max_size=300), max_size=8),
    st.lists(st.integers(1, 400), min_size=1),
    st.integers(8, 512),
    st.integers(2, 400),
    st.lists(st.integers(0, 4), min_size=1),
    st.integers(0, KEPT_BUFFERS_MAX),
)
def test_frames_are_the_same_borrowed_or_not(
    bodies: list[bytes], cuts: list[int], scratch: int, large: int, at_once: list[int], busy: int
) -> None:
    """Some at a time are taken where they were received; what then is for `next_frame` only is taken by that.

    Some or all of the buffers that are kept are others'.
    """
    frames = reader_of(framed(bodies), cuts, scratch, large)
    for _ in range(busy):
        frames._buffers.borrow(1)
    found: list[bytes] = []
    for turn in range(10_000):
        if frames.has_frame or frames.receive_now():
            for _ in range(at_once[turn % len(at_once)]):
                if (frame := frames.frame_now()) is not None:
                    found.append(bytes(frame))
            can_receive = frames.settle()
            overwrite(frames)
            if can_receive or turn % 2:
                continue
        elif not frames.has_ended:
            continue
        if (owned := run(frames.next_frame())) is None:
            break
        found.append(bytes(owned))
    assert found == bodies
    frames.close()
    assert frames._memory.used == 0


def overwrite(frames: FrameReader) -> None:
    """As others do that receive into the same places."""
    buffers = frames._buffers
    buffers.scratch[:] = bytes(len(buffers.scratch))
    if (buffer := buffers.borrow(1)) is not None:
        buffer[:1000] = bytes(1000)
        buffers.give_back(buffer)


@pytest.mark.parametrize("at_once", [True, False])
def test_an_invalid_size_is_found_when_its_frame_is_next(at_once: bool) -> None:
    """What came before it is a request as good as any."""
    frames = reader([framed([b"a", b"b"]) + b"\xff\xff\xff\xff"])
    if at_once:
        assert frames.receive_now()
        assert bytes(frames.frame_now() or b"") == b"a"
        assert not frames.settle()
        assert bytes(frames.frame_now() or b"") == b"b"
        with pytest.raises(ProtocolError):
            frames.frame_now()
    else:
        assert bytes(run(frames.next_frame()) or b"") == b"a"
        assert bytes(run(frames.next_frame()) or b"") == b"b"
        with pytest.raises(ProtocolError):
            run(frames.next_frame())


@pytest.mark.parametrize("size", [-1, 101])
@pytest.mark.parametrize("following", [0, 101])
def test_a_broken_size_is_found_at_once_whatever_follows(size: int, following: int) -> None:
    frames = reader([size.to_bytes(4, "big", signed=True) + bytes(following)], frame_bytes_max=100, scratch=200)
    assert frames.receive_now()
    with pytest.raises(ProtocolError):
        frames.frame_now()


def test_memory_is_held_from_the_first_look_to_the_last() -> None:
    memory = RequestMemory(10)
    frames = reader([framed([b"12345", b"67890"])], memory=memory)
    run(frames.next_frame())
    assert (memory.used, memory.is_full) == (5, False)
    frames.hold(5)
    assert (memory.used, memory.is_full) == (10, True)
    frames.done()
    assert (memory.used, memory.is_full) == (0, False)


def large_frame(size: int, kept: bool, memory: RequestMemory | None = None) -> tuple[FrameReader, RequestMemory]:
    """Its first ten bytes have come, in two pieces after its size, and the rest will in two."""
    body = bytes(range(256)) * (size // 256 + 1)
    pieces = [size.to_bytes(4, "big"), body[:3], body[3:10], body[10:1000], body[1000:size], framed([b"next"])]
    memory = memory or RequestMemory(1000)
    frames = reader(pieces, large=100, memory=memory)
    while not kept and frames._buffers.borrow(1) is not None:
        pass
    for _ in range(3):
        assert frames.receive_now()
        assert frames.frame_now() is None
        assert frames.settle()
    return frames, memory


@pytest.mark.parametrize("kept", [True, False])
def test_a_large_frame_is_served_from_its_own_buffer(kept: bool) -> None:
    size = 50_000
    frames, memory = large_frame(size, kept)
    assert memory.used == 10 if kept else memory.used <= 10 + GROWTH_BYTES_MIN  # whatever size is claimed
    while (frame := frames.frame_now()) is None:
        assert frames.receive_now()
    assert bytes(frame) == (bytes(range(256)) * 200)[:size]
    assert isinstance(frame, memoryview) == kept
    assert memory.used == 0
    del frame
    assert frames.settle()
    assert frames.receive_now()
    assert bytes(frames.frame_now() or b"") == b"next"


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_large_frame_took_is_free_when_its_connection_ends_inside_it(kept: bool) -> None:
    frames, memory = large_frame(5000, kept)
    frames.close()
    assert memory.used == 0
    assert frames._buffers.borrow(1) is not None or not kept


def test_without_room_one_large_frame_goes_on_and_then_the_next() -> None:
    first, memory = large_frame(5000, kept=True)
    second = large_frame(5000, kept=True, memory=memory)[0]
    small = reader([framed([b"12345"])], memory=memory)
    assert all(frames.may_go_on() for frames in (first, second, small))
    memory.take(1000)
    assert memory.is_full
    assert [frames.may_go_on() for frames in (first, second, small)] == [True, False, False]
    while (first.frame_now()) is None:
        assert first.may_go_on()
        assert first.receive_now()
    assert memory.is_full
    assert [frames.may_go_on() for frames in (first, second, small)] == [False, True, False]
    second.close()
    memory.give_back(1000)
    assert all(frames.may_go_on() for frames in (first, small))


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused_at_once(size: int) -> None:
    with pytest.raises(ProtocolError):
        drain(reader([size.to_bytes(4, "big", signed=True)], frame_bytes_max=100))


@pytest.mark.parametrize("cut", range(1, 9))
def test_only_produce_may_be_larger_than_the_small_bound(cut: int) -> None:
    def pieces(api_key: int) -> list[bytes]:
        data = (SMALL_FRAME_BYTES_MAX + 1).to_bytes(4, "big") + bytes([0, api_key, 0, 0])
        return [data[:cut], data[cut:]]

    for large in (100, 1 << 30):
        with pytest.raises(ProtocolError, match="only Produce"):
            drain(reader(pieces(3), large=large))
        with pytest.raises(EOFError):
            drain(reader(pieces(0), large=large))


def test_a_claimed_size_takes_no_memory_before_its_bytes_come() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(EOFError):
            drain(reader([(90 * 1024 * 1024).to_bytes(4, "big") + bytes(1000)]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_a_stream_that_ends_inside_a_frame_is_not_one_that_ends_between_frames() -> None:
    assert drain(reader([])) == []
    with pytest.raises(EOFError):
        drain(reader([b"\x00\x00"]))
