"""Kafka's record classes, asked through Records.java, and our side of its dump format."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from compat_tests.support.tools import program_command
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader, iter_batches, verify_crc
from kpybroker.wire.records.record import Record, iter_records

JAVA_SECONDS_MAX = 240
RECORDS_JAVA = Path(__file__).with_name("Records.java")


def ask_java(commands: Iterable[str]) -> list[str]:
    """One response a command, from one JVM."""
    sent = list(commands)
    done = subprocess.run(
        program_command("3.9.1", RECORDS_JAVA),
        input="\n".join(sent) + "\n",
        capture_output=True,
        text=True,
        timeout=JAVA_SECONDS_MAX,
    )
    responses = done.stdout.split("\n")[:-1]
    assert len(responses) == len(sent), done.stderr[-4000:]
    return responses


def dump(buffer: Buffer) -> str:
    """What Records.java writes for the same bytes, read by us."""
    return "".join(_dump_batch(buffer, position, header) for position, header in iter_batches(buffer, strict=True))


def _dump_batch(buffer: Buffer, position: int, header: BatchHeader) -> str:
    verify_crc(buffer, position, header)
    modern = header.magic == 2
    fields = (
        header.magic,
        int(header.codec),
        header.base_offset if modern else -1,
        header.last_offset,
        header.records_count,
        int(header.timestamp_type),
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        int(header.is_transactional),
        int(header.is_control),
        header.partition_leader_epoch,
        header.base_timestamp if header.has_delete_horizon else -1,
    )
    records = "".join(f"|{_dump_record(record)}" for record in iter_records(buffer, header, position))
    return f"[{' '.join(map(str, fields))}{records}]"


def _dump_record(record: Record) -> str:
    words = [str(record.offset), str(record.timestamp), str(record.sequence), _hex(record.key), _hex(record.value)]
    words += [f"{_hex(key.encode())}={_hex(value)}" for key, value in record.headers]
    return " ".join(words)


def _hex(value: bytes | None) -> str:
    return "-" if value is None else "x" + value.hex()
