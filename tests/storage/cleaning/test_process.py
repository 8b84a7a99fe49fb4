"""The cleaner's process and its protocol of lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kpybroker.storage.cleaning.cleaner import Cleaned, CleanedSegment, CleaningJob, Mapped
from kpybroker.storage.cleaning.process import (
    IO_ERROR,
    OTHER,
    Event,
    Failed,
    decode_event,
    decode_job,
    encode_event,
    encode_job,
)
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.log.log import Log
from kpybroker.wire.records.builder import build_batch
from tests.support.storage.batches import NOW_MS, append_batch, log_config
from tests.support.storage.cleaning import job_for
from tests.support.storage.keyed_load import all_records

UNLIMITED = sys.float_info.max
END_WITHIN_S = 30


def dirty_log(directory: Path) -> Log:
    log = Log(local_files(), str(directory / "t-0"), log_config(cleanup_policy=frozenset({"compact"})), now_ms=NOW_MS)
    for number in range(100):
        append_batch(log, build_batch([(b"%d" % (number % 7), b"v" * 50, NOW_MS)]))
    log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    return log


def start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kpybroker.storage.cleaning.process"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def give(process: subprocess.Popen[bytes], job: CleaningJob, rate: float = UNLIMITED) -> None:
    assert process.stdin is not None
    process.stdin.write(encode_job(job, rate))
    process.stdin.flush()


def events(process: subprocess.Popen[bytes]) -> list[Event]:
    """Up to the one that ends a job."""
    assert process.stdout is not None
    found: list[Event] = []
    for line in process.stdout:
        found.append(decode_event(line))
        if isinstance(found[-1], Cleaned | Failed):
            break
    return found


@pytest.mark.parametrize(
    "event", [Mapped(7, 100, 0.5), CleanedSegment(3, [3, 5]), Cleaned(1, 2, 3, 4, 5, 6), Failed(OTHER, "ü\n", "")]
)
def test_events_are_lines(event: Event) -> None:
    line = encode_event(event)
    assert line.count(b"\n") == 1
    assert decode_event(line) == event
    assert type(decode_event(line)) is type(event)


def test_jobs_are_lines(tmp_path: Path) -> None:
    _, job = job_for(dirty_log(tmp_path))
    line = encode_job(job, UNLIMITED)
    assert line.count(b"\n") == 1
    assert decode_job(line) == (job, UNLIMITED)


def test_one_process_does_one_job_after_the_other_and_ends_with_its_input(tmp_path: Path) -> None:
    logs = [dirty_log(tmp_path / name) for name in ("a", "b")]
    process = start()
    for log in logs:
        give(process, job_for(log)[1])
        mapped, segment, done = events(process)
        assert isinstance(mapped, Mapped)
        assert segment == CleanedSegment(0, [0])
        assert isinstance(done, Cleaned)
        assert (done.messages_read, done.messages_written) == (100, 7)
        assert Path(log.directory, "00000000000000000000.log.cleaned").stat().st_size == done.bytes_written
        assert len(all_records(log)) == 100
    assert process.communicate(timeout=END_WITHIN_S)[0] == b""
    assert process.returncode == 0


def test_a_job_that_fails_says_so_and_the_next_one_may_come(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    _, job = job_for(log)
    Path(log.directory, "00000000000000000000.log").rename(tmp_path / "elsewhere")
    process = start()
    give(process, job)
    (missing,) = events(process)
    assert isinstance(missing, Failed)
    assert missing.kind == IO_ERROR
    assert "FileNotFoundError" in missing.details
    data = bytearray((tmp_path / "elsewhere").read_bytes())
    data[500] ^= 1
    Path(job.directory, "00000000000000000000.log").write_bytes(data)
    give(process, job)
    (damaged,) = events(process)
    assert isinstance(damaged, Failed)
    assert damaged.kind == OTHER
    assert "corrupt" in damaged.message
    process.communicate(timeout=END_WITHIN_S)


def test_it_ends_within_a_job_that_is_no_longer_wanted(tmp_path: Path) -> None:
    """At a byte a second the job would take hours."""
    log = dirty_log(tmp_path)
    process = start()
    give(process, job_for(log)[1], rate=1.0)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=END_WITHIN_S) == 0
    assert process.stdout is not None
    assert process.stdout.read() == b""
    process.stdout.close()


def test_it_imports_neither_the_broker_nor_its_loop() -> None:
    code = (
        "import sys, kpybroker.storage.cleaning.process;"
        "print([name for name in sys.modules if name.split('.')[0] == 'trio' or name.startswith('kpybroker.broker')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"
