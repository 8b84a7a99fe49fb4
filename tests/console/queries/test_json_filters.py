"""The processes of JSON filters: bounded in number and time, replaced when they end. `test_filters` has the filters."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.queries.outside import json_filters
from kpybroker.console.queries.outside.json_filter_worker import matches

ENDLESS = "$..[?$..[?$..[?@.zz]]]"
DEEP = [[[[number] * 9] * 9] * 9 for number in range(20)]


def test_what_a_process_replies() -> None:
    assert matches("$.a", {"a": None})
    assert not matches("$.b", {"a": None})
    assert not matches("$[?@.a > 'x']", [{"a": 1}])
    assert json_filters.matches("$.a", {"a": "\u2028\ud800"})


def test_a_process_that_was_ended_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(json_filters, "RECORD_S_MAX", 0.2)  # it computes as long as it may
            with pytest.raises(CommandError, match="needs more than"):
                json_filters.matches(ENDLESS, DEEP)
        assert json_filters.matches("$[0]", DEEP)
    assert len(json_filters._idle) <= json_filters.IDLE_MAX


def test_an_idle_process_that_has_gone_is_replaced() -> None:
    assert json_filters.matches("$.a", {"a": 1})
    assert json_filters._idle
    for worker in json_filters._idle:
        worker._process.kill()
        worker._process.wait()
    assert json_filters.matches("$.a", {"a": 1})


def test_more_filters_than_there_are_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_filters, "WAIT_S_MAX", 0.01)
    taken = [json_filters._places.acquire(timeout=60) for _ in range(json_filters.WORKERS_MAX)]
    try:
        with pytest.raises(CommandError, match="JSON filters are at work"):
            json_filters.matches("$.a", {"a": 1})
    finally:
        for _ in taken:
            json_filters._places.release()
    assert json_filters.matches("$.a", {"a": 1})


def test_many_at_once_all_get_a_reply() -> None:
    responses: list[bool] = []
    causes: list[str] = []

    def ask(number: int) -> None:
        while True:
            try:
                responses.append(json_filters.matches("$.a", {"a" if number % 2 else "b": number}))
                return
            except CommandError as error:
                causes.append(error.cause)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(responses) == [False] * 10 + [True] * 10
    assert all("are at work" in cause for cause in causes)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_is_the_parents() -> None:
    command = [sys.executable, "-P", "-c", json_filters.COMMAND]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(2):
            process.stdin.write(json.dumps(["$", 1]).encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"1\n"
            process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait() == 0
        assert process.stderr.read() == b""
