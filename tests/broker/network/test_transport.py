"""Real sockets on loopback: bytes and file slices arrive whole and in order, whatever the sizes."""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.network.sending import SMALL_SLICE_BYTES, Part
from kpybroker.broker.network.transport import (
    BACKLOG,
    KAFKAS_BACKLOG,
    KAFKAS_SEND_BUFFER_BYTES,
    SEND_BUFFER_BYTES,
    SocketListener,
    SocketStream,
    SocketTransport,
    Stream,
)
from tests.support.storage.file_slice import Slice


async def pair() -> tuple[Stream, Stream]:
    transport = SocketTransport()
    listener = transport.listen("127.0.0.1", 0, 5)
    client = await transport.connect(*listener.address, timeout_s=60)
    server = await listener.accept()
    listener.close()
    return client, server


async def read_all(stream: Stream) -> bytes:
    received = bytearray()
    buffer = memoryview(bytearray(65536))
    while count := await stream.receive_into(buffer):
        received += buffer[:count]
    return bytes(received)


@pytest.mark.parametrize("seed", range(5))
async def test_parts_arrive_whole_and_in_order(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "segment"
    content = chance.randbytes(3_000_000)
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    parts: list[Part] = []
    expected = b""
    for _ in range(100):
        size = chance.choice([0, 1, 100, SMALL_SLICE_BYTES, SMALL_SLICE_BYTES + 1, 500_000])
        position = chance.randrange(len(content) - size)
        data = content[position : position + size]
        expected += data
        parts.append(data if chance.random() < 0.5 else Slice(descriptor, position, size))
    client, server = await pair()
    received = b""

    async def receive() -> None:
        nonlocal received
        received = await read_all(client)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await server.send_parts(parts)
        server.close()
    os.close(descriptor)
    assert received == expected


async def test_a_slice_longer_than_its_file_is_an_error_not_a_hang(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(100_000))
    with path.open("rb") as file:
        client, server = await pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_all, client)
            with pytest.raises(OSError, match="shorter than the slice"):
                await server.send_parts([Slice(file.fileno(), 0, 200_000)])
            server.close()


async def test_closing_wakes_a_task_that_waits_on_the_stream() -> None:
    client, server = await pair()
    ended = trio.Event()

    async def receive() -> None:
        with pytest.raises((trio.ClosedResourceError, OSError)):
            await read_all(client)
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        client.close()
        await ended.wait()
    server.close()


@pytest.mark.parametrize(
    ("configured", "asked"), [(KAFKAS_SEND_BUFFER_BYTES, SEND_BUFFER_BYTES), (90_000, 90_000), (110_000, 110_000)]
)
async def test_only_kafkas_default_send_buffer_is_another(configured: int, asked: int) -> None:
    """Linux grants twice what is asked for, up to a limit of its own."""
    transport = SocketTransport(configured)
    listener = transport.listen("127.0.0.1", 0, 5)
    with socket.create_connection(listener.address) as client, socket.socket() as other:
        stream = await listener.accept()
        listener.close()
        other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, asked)
        assert isinstance(stream, SocketStream)
        assert stream._sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == other.getsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF
        )
        client.close()
        stream.close()


def test_a_port_taken_is_an_os_error() -> None:
    transport = SocketTransport()
    listener = transport.listen("127.0.0.1", 0, 5)
    with pytest.raises(OSError, match="in use"):
        transport.listen("127.0.0.1", listener.address[1], 5)


def somaxconn() -> int:
    return int(Path("/proc/sys/net/core/somaxconn").read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much may wait")
async def test_kafkas_default_backlog_is_a_larger_one() -> None:
    for configured, used in ((KAFKAS_BACKLOG, min(BACKLOG, somaxconn())), (49, 49), (51, 51)):
        listener = SocketTransport().listen("127.0.0.1", 0, configured)
        assert isinstance(listener, SocketListener)
        info = listener._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
        assert struct.unpack_from("I", info, 28) == (used,), "tcpi_sacked: of a listening socket its backlog"
        listener.close()
