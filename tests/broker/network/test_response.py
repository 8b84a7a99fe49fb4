"""A response is a frame in memory, or parts with what follows once they are sent."""

from __future__ import annotations

from pathlib import Path

import trio

from kpybroker.broker.loop.steps import Steps, Wait, run_steps
from kpybroker.broker.network.response import NO_RESPONSE, Response, steps_of
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


def test_a_response_is_awaited_and_is_steps_as_a_pending_one_is() -> None:
    response = Response(b"frame")

    async def awaited() -> Response:
        return await response

    assert trio.run(awaited) is response
    assert run_steps(response.as_steps()) is response
    assert run_steps(steps_of(lambda: response)) is response


def test_a_pending_response_is_the_rest_of_the_steps_it_is_part_of() -> None:
    wait, response = Wait(1.0), Response(b"frame")

    def made() -> Steps[Response]:
        yield wait
        return response

    outcome = run_steps(steps_of(lambda: run_steps(made())))
    assert outcome.is_pending
    assert outcome.wait is wait
    wait.end()
    assert outcome.resume() is response
