"""What `kpybroker metrics watch` prints of a Jolokia that changes."""

from __future__ import annotations

import csv
import errno
import io
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.metrics.watch import DEPTH_MAX, PAUSE_S, Clock, Source, Watch, watch
from tests.support.network.jolokia_fake import FakeJolokia, serving
from tests.support.programs.command_line import invoke

A = "kafka.server:type=A,name=a"
B = "kafka.server:type=A,name=b"
ALL = "kafka.server:type=A,*"


@pytest.fixture
def fake() -> Iterator[FakeJolokia]:
    with serving(FakeJolokia({B: {"Value": 7}, A: {"Count": 1, "Mean": 0.5}})) as running:
        yield running


class Days:
    """A clock whose pauses do what a test says, one after the other; then the user presses Ctrl-C."""

    def __init__(self, *actions: Callable[[], object], reading_s: float = 0) -> None:
        self._actions = list(actions)
        self._reading_s = reading_s
        self.now_s = 1000.0
        self.pauses: list[float] = []
        self.clock = Clock(self._tell, self._tell, self._pause)

    def _tell(self) -> float:
        self.now_s += self._reading_s
        return self.now_s

    def _pause(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 6))
        self.now_s += seconds
        if not self._actions:
            raise KeyboardInterrupt
        self._actions.pop(0)()


def test_a_header_then_a_row_for_each_time(fake: FakeJolokia, capsys: pytest.CaptureFixture[str]) -> None:
    days = Days(lambda: fake.mbeans[A].update(Count=2))
    assert watch(Source(fake.address), Watch([ALL]), days.clock) == 0
    assert capsys.readouterr().out.splitlines() == [
        f'"time","{A}:Count","{A}:Mean","{B}:Value"',
        "1000000,1,0.5,7",
        "1001000,2,0.5,7",
    ]
    assert days.pauses == [1.0, 1.0]


def test_a_ctrl_c_whose_exception_is_lost_ends_it_too(fake: FakeJolokia, capsys: pytest.CaptureFixture[str]) -> None:
    """As Python drops one that is raised while it finalizes an object."""

    def press() -> None:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    days = Days(press, lambda: pytest.fail("it goes on"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert watch(Source(fake.address), Watch([ALL]), days.clock) == 0
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_columns_are_those_of_the_start(fake: FakeJolokia, capsys: pytest.CaptureFixture[str]) -> None:
    def replaced() -> None:
        del fake.mbeans[B]
        del fake.mbeans[A]["Mean"]
        fake.mbeans["kafka.server:type=A,name=c"] = {"Value": 9}

    days = Days(replaced, lambda: None, lambda: fake.mbeans.update({B: {"Value": 8}}))
    assert watch(Source(fake.address), Watch([ALL, B]), days.clock) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[1:] == ["1000000,1,0.5,7", "1001000,1,,", "1002000,1,,", "1003000,1,,8"]
    assert said.err.splitlines() == [f"kpybroker: {A}:Mean and 1 more: not there any more, its cells are empty"]


def test_the_time_of_a_reading_is_part_of_the_interval(fake: FakeJolokia, capsys: pytest.CaptureFixture[str]) -> None:
    days = Days(reading_s=0.1)
    assert watch(Source(fake.address), Watch([ALL], interval_ms=500), days.clock) == 0
    assert days.pauses == [0.3]
    capsys.readouterr()


@pytest.mark.parametrize("option", [["--one-time"], ["--reporting-interval", "-1"]])
@pytest.mark.parametrize(
    ("form", "out"),
    [
        ("original", f'"time","{A}:Count","{B}:Value"\nT,1,7\n'),
        ("properties", f"time=T\n{A}:Count=1\n{B}:Value=7\n"),
        ("CSV", f'time,"T"\n{A}:Count,"1"\n{B}:Value,"7"\n'),
        ("tsv", f"time\tT\n{A}:Count\t1\n{B}:Value\t7\n"),
    ],
)
def test_each_format(
    fake: FakeJolokia, monkeypatch: pytest.MonkeyPatch, form: str, out: str, option: list[str]
) -> None:
    words = ["--report-format", form, "--attributes", "Value,,Count,Nothing", "--date-format", "'T'", *option]
    result = invoke(monkeypatch, "metrics", "watch", fake.address, *words)
    assert (result.code, result.text, result.err) == (0, out, "")


def test_values_are_printed_as_they_were_sent(fake: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.mbeans = {A: {}}
    attributes = (
        b'{"a": 1.0E-5, "b": 12345678901234567890, "c": null, "d": true, "e": "text, more",'
        b' "f": {"x": [1.50, null, "\\u00e9"]}, "g": "ERROR: java.lang.UnsupportedOperationException", "h": NaN}'
    )

    def raw(requests: list[dict[str, Any]]) -> tuple[int, bytes]:
        value = b'["' + A.encode() + b'"]' if requests[0]["type"] == "search" else attributes
        return 200, b'[{"status": 200, "value": ' + value + b"}]"

    fake.replace = raw
    result = invoke(
        monkeypatch,
        *("metrics", "watch", fake.address, "--object-name", A, "--one-time", "--report-format", "properties"),
    )
    assert [line.removeprefix(f"{A}:") for line in result.lines[1:]] == [
        *("a=1.0E-5", "b=12345678901234567890", "c=NaN", "d=true", "e=text, more"),
        *('f={"x":[1.50,null,"\\u00e9"]}', "h=NaN"),
    ]


def test_a_value_without_a_bottom_is_refused(fake: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    deep: list[Any] = []
    for _ in range(DEPTH_MAX + 1):
        deep = [deep]
    fake.mbeans[A]["Deep"] = deep
    assert invoke(monkeypatch, "metrics", "watch", fake.address, "--one-time", "--attributes", "Value").code == 0
    result = invoke(monkeypatch, "metrics", "watch", fake.address, "--one-time")
    assert result.err.splitlines() == [
        "kpybroker: the attribute Deep is nested too deeply to be printed",
        "fix: leave it out: --attributes",
    ]


def test_all_mbeans_are_read_unless_some_are_named(fake: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    head, row = csv.reader(invoke(monkeypatch, "metrics", "watch", fake.address, "--one-time").lines)
    assert head == ["time", f"{A}:Count", f"{A}:Mean", f"{B}:Value"]
    assert row[1:] == ["1", "0.5", "7"]
    assert {request["mbean"] for request in fake.asked} == {"*:*"}


@pytest.mark.parametrize(
    ("words", "code", "cause", "fix"),
    [
        (["--object-name", "kafka.x:*"], 1, "no MBean matches kafka.x:*", "kpybroker metrics list"),
        (["--object-name", A, "--object-name", "kafka.x:type=A"], 1, "no MBean matches kafka.x:type=A", "--wait"),
        (["--object-name", "kafka.server"], 2, "--object-name kafka.server is no name of an MBean: ", "metrics list"),
        (["--attributes", "Nothing"], 1, "the MBeans of *:* have no attribute Nothing", "leave --attributes out"),
        (["--date-format", "YYYY"], 2, "--date-format has the letter Y, which is not known", "use "),
    ],
)
def test_what_cannot_be_printed_is_said_in_two_lines(
    fake: FakeJolokia, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, cause: str, fix: str
) -> None:
    result = invoke(monkeypatch, "metrics", "watch", fake.address, "--one-time", *words)
    assert (result.code, result.text) == (code, "")
    first, second = result.err.splitlines()
    assert first.startswith(f"kpybroker: {cause}")
    assert second.startswith("fix: ")
    assert fix in second


def test_it_waits_for_an_mbean(fake: FakeJolokia, capsys: pytest.CaptureFixture[str]) -> None:
    found = fake.mbeans.pop(A)
    days = Days(lambda: None, lambda: fake.mbeans.update({A: found}))
    assert watch(Source(fake.address, wait_s=10), Watch([A], once=True), days.clock) == 0
    assert capsys.readouterr().out.splitlines()[1] == "1000200,1,0.5"
    assert days.pauses == [PAUSE_S, PAUSE_S]


def test_it_waits_no_longer_than_it_may(fake: FakeJolokia) -> None:
    days = Days(*[lambda: None] * 20)
    with pytest.raises(CommandError, match="no MBean matches"):
        watch(Source(fake.address, wait_s=1), Watch(["kafka.x:*"]), days.clock)
    assert 10 <= len(days.pauses) <= 11


def test_a_broker_that_fails_ends_it_unless_it_may_wait(fake: FakeJolokia, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        fake.replace = lambda requests: (503, b"")

    def recover() -> None:
        fake.replace = None

    with pytest.raises(CommandError, match="HTTP 503"):
        watch(Source(fake.address), Watch([A]), Days(fail).clock)
    recover()
    capsys.readouterr()
    assert watch(Source(fake.address, wait_s=5), Watch([A]), Days(fail, lambda: None, recover).clock) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == ['"time"', "1000000", "1001200"]


def test_waiting_does_not_hide_what_stays_wrong(fake: FakeJolokia) -> None:
    fake.replace = lambda requests: (401, b"")
    days = Days()
    with pytest.raises(CommandError, match="asks for a login"):
        watch(Source(fake.address, wait_s=5), Watch([A]), days.clock)
    assert days.pauses == []


def test_names_are_listed_in_order(fake: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke(monkeypatch, "metrics", "list", fake.address).lines == [A, B]
    assert invoke(monkeypatch, "metrics", "list", fake.address, "--object-name", B).lines == [B]
    assert invoke(monkeypatch, "metrics", "list", fake.address, "--object-name", "x:*").code == 1


def test_a_full_disk_is_said(fake: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Full(), write_through=True))
    with pytest.raises(CommandError, match="standard output cannot be written: No space left on device"):
        watch(Source(fake.address), Watch([A]), Days().clock)
