"""A slice of the fuzzer's work (`make fuzz` does fifty times as much), and proof that the fuzzer notices faults."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.wire.api import API_INFO
from kpybroker.wire.errors import ProtocolError
from tests.wire.fuzz import fuzz_decode
from tests.wire.fuzz.fuzz_decode import FuzzFailure, Report, fuzz, fuzz_large_frames, read_corpus, run_frame


def test_mutated_frames_raise_nothing_but_protocol_errors_within_their_memory() -> None:
    report = fuzz(executions=20_000, seed=1)
    assert report.decoded > 1000
    assert report.refused > 1000


def test_many_small_elements_stay_within_their_memory() -> None:
    report = Report()
    fuzz_large_frames(report, elements=300)
    assert report.executions > len(API_INFO)


def test_the_corpus_holds_every_version_of_every_request() -> None:
    ends = {run_frame(frame) for frame in read_corpus()}
    for info in API_INFO.values():
        low, high = info.valid_versions
        assert {f"{info.name} {version}: decoded" for version in range(low, high + 1)} <= ends


@pytest.mark.parametrize("error", [IndexError, MemoryError, RecursionError, UnicodeDecodeError])
def test_any_other_exception_is_a_failure_with_the_frame_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def broken(*arguments: Any) -> None:
        raise error("utf-8", b"", 0, 1, "why") if error is UnicodeDecodeError else error

    monkeypatch.setattr(fuzz_decode, "decode", broken)
    with pytest.raises(FuzzFailure, match="--frame 00"):
        fuzz(executions=10, seed=1)


def test_hoarding_memory_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def hoarding(*arguments: Any) -> list[bytes]:
        return [bytes(1000) for _ in range(10_000)]

    monkeypatch.setattr(fuzz_decode, "decode", hoarding)
    with pytest.raises(FuzzFailure, match="bytes for a frame of"):
        fuzz_large_frames(Report(), elements=1)


def test_refusing_everything_is_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*arguments: Any) -> None:
        raise ProtocolError("no")

    monkeypatch.setattr(fuzz_decode, "decode", refusing)
    monkeypatch.setattr(fuzz_decode, "_decode_in_steps", lambda *arguments: None)
    assert fuzz(executions=10, seed=1).decoded == 0
