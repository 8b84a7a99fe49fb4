"""A response is a frame in memory, or parts with what follows once they are sent."""

from __future__ import annotations

from pathlib import Path

from kpybroker.broker.network.response import NO_RESPONSE, Response
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.disk.slice import FileSlice, SharedFile


def test_a_frame_is_all_of_it() -> None:
    response = Response(b"abc")
    response.sent()
    assert (response.frame, list(response.all_parts), response.read()) == (b"abc", [b"abc"], b"abc")
    assert NO_RESPONSE.frame == b""


def test_parts_are_read_in_order_and_released_once_they_are_sent(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    shared = SharedFile(local_files().open(str(tmp_path / "file")))
    part = FileSlice(shared, 2, 5)
    done: list[str] = []
    response = Response(None, (b"head ", part, memoryview(b" tail")), (part.release, lambda: done.append("done")))
    assert response.read() == b"head 23456 tail"
    assert (shared.holders, done) == (2, [])
    response.sent()
    assert (shared.holders, done) == (1, ["done"])
    shared.release()
