"""Forty bombs, ten a codec, at every place where records are decompressed: refused with their code, memory stays flat.

First as what producers send. Then as what lies in the logs, planted there while the broker was down: recovery,
conversion for old consumers, lookups by time, compaction, the logs of groups and transactions, and `kpybroker log`.
"""

from __future__ import annotations

import contextlib
import json
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from confluent_kafka import Producer

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.overload.test_hostile import batch_around
from compat_tests.overload.victim import MIB, Victim, memory
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.topics.raw_log import RawLog, batch
from compat_tests.support.waiting import eventually
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.storage.disk import names
from kpybroker.wire.compression import Codec, compress
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.records.batch import iter_batches, parse_header
from kpybroker.wire.records.legacy import encode_message
from tests.wire import bombs

T = TypeVar("T")

OTHER_PROCESS_MAX = 300 * MIB
"""Twice what one batch may take there, and the process itself."""
LARGEST = 16 * MIB
GROWTH_MAX = 64 * MIB + LARGEST
"""What any input may cost, and a request that is larger than by default. A bomb let through would be a thousand times
its size."""
RECORDS = 1000
FALSE_TIMESTAMP = 1_700_000_000_001  # after that of every record, so that a search has to look into the batch

LARGE = ErrorCode.MESSAGE_TOO_LARGE
INVALID = ErrorCode.INVALID_RECORD
CORRUPT = ErrorCode.CORRUPT_MESSAGE
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR  # what Kafka makes of what cannot be decompressed

IN_BATCHES: dict[Codec, list[ErrorCode]] = {
    Codec.GZIP: [INVALID] * 3 + [LARGE] * 3 + [INVALID, UNKNOWN, UNKNOWN, INVALID],
    Codec.LZ4: [LARGE] * 8 + [UNKNOWN] * 2,
    Codec.SNAPPY: [LARGE, UNKNOWN, UNKNOWN] + [LARGE] * 3 + [UNKNOWN] * 4,
    Codec.ZSTD: [LARGE] * 3 + [UNKNOWN] + [LARGE] * 2 + [UNKNOWN] + [LARGE] * 3,
}
IN_MESSAGES: dict[Codec, list[ErrorCode]] = {
    Codec.GZIP: [CORRUPT] * 3 + [LARGE] * 3 + [INVALID, UNKNOWN, UNKNOWN, CORRUPT],
    Codec.LZ4: [LARGE] * 9 + [INVALID],
    Codec.SNAPPY: [LARGE, UNKNOWN, UNKNOWN] + [LARGE] * 3 + [UNKNOWN] * 4,
    Codec.ZSTD: [INVALID] * 10,  # there is no zstd in these
}
UNNEEDED = {codec: [ErrorCode.NONE if code is LARGE else code for code in codes] for codec, codes in IN_BATCHES.items()}
"""Where the topic's rules need no record: a client's first batches are walked all the same, and all of them once it is
caught, as it is here by its first one; but what takes too much is stored as it was sent.
"""
ALL = frozenset(IN_BATCHES)
TOPICS: dict[str, tuple[dict[str, Any], frozenset[Codec]]] = {
    "compacted": ({"cleanup_policy": "compact"}, frozenset()),
    "bounded": ({"message_timestamp_after_max_ms": "3600000"}, frozenset()),
    "uncompressed": ({"compression_type": "uncompressed"}, frozenset()),
    "recompressed": ({"compression_type": "gzip"}, frozenset({Codec.GZIP})),
    "stamped": ({"message_timestamp_type": "LogAppendTime"}, ALL),
    "plain": ({}, ALL),
}
"""Configuration, and the codecs whose batches may be stored as they came."""
STORED = ("stored-0", "stored-1", "stored-2")
"""Topics with bombs in messages of magic 0 and 1, and in batches."""
OF_MAKE_TEST = frozenset(("compacted", "plain", "recompressed"))
"""Topics of whose batches the records are seen, are not, and are written again."""
BROKEN, SOUND = range(2)
"""Partitions of the internal topics, of which one holds bombs."""


TOO_NEW = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE  # zstd for a consumer that does not know it
STORED_IN_BATCHES = {
    codec: [CORRUPT if code is UNKNOWN else code for code in codes] for codec, codes in IN_BATCHES.items()
} | {Codec.LZ4: [LARGE] * 9 + [INVALID], Codec.ZSTD: [TOO_NEW] * 10}
CONVERTED = {
    "stored-1": [
        CORRUPT if code is UNKNOWN else code
        for codec, codes in IN_MESSAGES.items()
        if codec is not Codec.ZSTD
        for code in codes
    ],
    "stored-2": [code for codes in STORED_IN_BATCHES.values() for code in codes],
}


def message_around(bomb: bytes, codec: Codec, magic: int) -> bytes:
    return bytes(encode_message(0, magic, codec, FALSE_TIMESTAMP, None, bomb))


@pytest.fixture(scope="module")
def victim(launcher: Launcher) -> Iterator[Victim]:
    started = Victim(
        launcher.broker(
            offsets_topic_num_partitions="2",
            transaction_state_log_num_partitions="2",
            log_cleaner_backoff_ms="200",
            log_cleaner_min_cleanable_ratio="0",
        )
    )
    started.bystander.start()
    yield started
    started.close()
    started.broker.service.kill()


@contextlib.contextmanager
def watched(victim: Victim) -> Iterator[None]:
    """Within it the broker grows by little, and serves others."""
    victim.bystander.progresses()
    victim.reset_peak()
    before = victim.rss
    yield
    grown = victim.peak_rss - before
    print(f"{grown / MIB:.1f} MiB at the most")
    assert grown <= GROWTH_MAX
    victim.bystander.progresses()
    assert victim.broker.service.pid == victim.pid


@pytest.fixture
def flat(victim: Victim) -> Iterator[Victim]:
    with watched(victim):
        yield victim
    victim.is_unharmed()


# --- what producers send


@pytest.mark.parametrize(
    "topic", [pytest.param(topic, marks=[] if topic in OF_MAKE_TEST else pytest.mark.wide) for topic in TOPICS]
)
def test_a_bomb_in_a_batch_is_refused_where_its_records_must_be_seen(flat: Victim, topic: str) -> None:
    config, kept = TOPICS[topic]
    log = RawLog(flat.broker, f"batches-{topic}", max_message_bytes=LARGEST, **config)
    reported: dict[Codec, list[ErrorCode]] = {codec: [] for codec in IN_BATCHES}
    for codec, bomb in bombs.all_bombs():
        reported[codec].append(log.produce(batch_around(bomb, codec, RECORDS)).error)
    assert reported == {codec: UNNEEDED[codec] if codec in kept else codes for codec, codes in IN_BATCHES.items()}
    assert log.offset_at(-1) == RECORDS * sum(codes.count(ErrorCode.NONE) for codes in reported.values())


@pytest.mark.parametrize("magic", [pytest.param(0, marks=pytest.mark.wide), 1])
def test_a_bomb_in_an_old_message_is_refused_for_that_must_be_converted(flat: Victim, magic: int) -> None:
    log = RawLog(flat.broker, f"messages-{magic}", max_message_bytes=LARGEST)
    reported: dict[Codec, list[ErrorCode]] = {codec: [] for codec in IN_MESSAGES}
    for codec, bomb in bombs.all_bombs():
        reported[codec].append(log.produce(message_around(bomb, codec, magic), version=2).error)
    assert reported == IN_MESSAGES
    assert log.offset_at(-1) == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("outer", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_compressed_messages_within_a_compressed_message_are_not_looked_into(
    flat: Victim, magic: int, outer: Codec
) -> None:
    log = RawLog(flat.broker, f"nested-{magic}-{outer.name}")
    reported = set()
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        within = message_around(compress(codec, bytes(MIB), magic=magic), codec, magic)
        reported.add(
            log.produce(message_around(compress(outer, within * 8, magic=magic), outer, magic), version=2).error
        )
    assert reported == {INVALID}


# --- what lies in the logs


def plant(directory: Path, batches: list[bytes]) -> None:
    """Add batches to the end of a closed log of one segment."""
    (path,) = directory.glob(f"*{names.LOG_SUFFIX}")
    data = path.read_bytes()
    end = max((header.next_offset for _, header in iter_batches(data)), default=0)
    with path.open("ab") as file:
        for raw in batches:
            batch = bytearray(raw)
            struct.pack_into(">q", batch, 0, end)
            end = parse_header(batch).next_offset
            file.write(batch)


def name_in(partition: int) -> str:
    """A group or transactional id whose coordinator is in that partition."""
    return next(name for name in map("id-{}".format, range(100)) if coordinator_partition(name, 2) == partition)


@pytest.fixture(scope="module")
def bombed(victim: Victim) -> Iterator[Victim]:
    """The same broker, its logs full of bombs, after an unclean stop and a recovery."""
    broker = victim.broker
    for log in STORED:
        RawLog(broker, log, max_message_bytes=LARGEST)
    for partition in (BROKEN, SOUND):
        quick.read(broker.bootstrap, [("bystander", 0)], 1, group=name_in(partition))
        settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": name_in(partition)}
        Producer({**settings, **quick.QUIET}).init_transactions(quick.DEADLINE_S)
    victim.close()
    broker.stop()
    batches = [batch_around(bomb, codec, RECORDS) for codec, bomb in bombs.all_bombs()]
    plant(broker.data_dir / "stored-2-0", batches)
    for magic in (0, 1):
        messages = [message_around(bomb, codec, magic) for codec, bomb in bombs.all_bombs() if codec is not Codec.ZSTD]
        plant(broker.data_dir / f"stored-{magic}-0", messages)
    for topic in ("__consumer_offsets", "__transaction_state"):
        plant(broker.data_dir / f"{topic}-{BROKEN}", batches)
    (broker.data_dir / names.CLEAN_SHUTDOWN).unlink()
    broker.start()
    again = Victim(broker, topic="bystander-again")
    again.bystander.start()
    yield again
    again.close()


@pytest.fixture
def flat_bombed(bombed: Victim) -> Iterator[Victim]:
    with watched(bombed):
        yield bombed


def stored(broker: Broker, topic: str) -> RawLog:
    return RawLog(broker, topic, max_message_bytes=LARGEST, exists=True)


def test_recovery_looks_at_headers_and_checksums_and_so_stays_small_and_loses_nothing(bombed: Victim) -> None:
    assert bombed.peak_rss <= 128 * MIB
    ends = {log: quick.end_offset(bombed.broker.bootstrap, log, 0) for log in STORED}
    assert ends == {"stored-0": 30, "stored-1": 30, "stored-2": 40 * RECORDS}


@pytest.mark.parametrize(
    ("log", "version"), [("stored-1", 0), pytest.param("stored-2", 0, marks=pytest.mark.wide), ("stored-2", 2)]
)
def test_a_bomb_that_must_be_converted_is_an_error(flat_bombed: Victim, log: str, version: int) -> None:
    found = stored(flat_bombed.broker, log)
    step = RECORDS if log == "stored-2" else 1
    reported = [found.fetch(offset, version).error_code for offset in range(0, found.offset_at(-1), step)]
    assert reported == CONVERTED[log]


@pytest.mark.parametrize(
    ("log", "version"),
    [
        *(pytest.param(log, version, marks=pytest.mark.wide) for log, version in (("stored-0", 0), ("stored-2", 4))),
        *(("stored-1", 2), ("stored-2", 11)),
    ],
)
def test_a_bomb_in_the_consumers_format_is_data(flat_bombed: Victim, log: str, version: int) -> None:
    found = stored(flat_bombed.broker, log)
    end = found.offset_at(-1)
    offset = read = 0
    while offset < end:
        data = found.fetch(offset, version)
        headers = [header for _, header in iter_batches(bytes(data.records or b""))]
        assert (data.error_code, headers[0].base_offset) == (0, offset)
        offset, read = headers[-1].next_offset, read + len(headers)
    assert read == (40 if log == "stored-2" else 30)


@pytest.mark.parametrize("log", ["stored-1", "stored-2"])
def test_a_lookup_by_time_that_comes_to_a_bomb_fails(flat_bombed: Victim, log: str) -> None:
    assert stored(flat_bombed.broker, log).lookup(FALSE_TIMESTAMP).error_code in (CORRUPT, INVALID, LARGE)


def test_groups_and_transactions_of_a_log_with_a_bomb_have_no_coordinator(flat_bombed: Victim) -> None:
    with Raw(flat_bombed.address) as raw:
        for partition, reported in ((BROKEN, ErrorCode.NOT_COORDINATOR), (SOUND, ErrorCode.NONE)):
            wanted = OffsetFetchRequest(group_id=name_in(partition), topics=None)
            eventually(lambda: raw.ask(wanted, 5).error_code == reported, f"{reported.name}")
            begin = InitProducerIdRequest(transactional_id=name_in(partition), transaction_timeout_ms=60_000)
            eventually(lambda: raw.ask(begin, 4).error_code == reported, f"{reported.name}")
    output = flat_bombed.broker.service.output()
    for topic in ("__consumer_offsets", "__transaction_state"):
        assert f"{topic}-{BROKEN}, which stays without a coordinator here" in output


def test_compaction_gives_up_a_log_with_a_bomb(flat_bombed: Victim) -> None:
    broker = flat_bombed.broker
    for topic in STORED:
        log = stored(broker, topic)
        log.alter(max_message_bytes=LARGEST - 1, cleanup_policy="compact", segment_ms=1)
        for later in (0, 10):
            assert log.produce(batch(int(time.time() * 1000) + later, key=b"k")).error is ErrorCode.NONE
    process, most = psutil.Process(flat_bombed.pid), 0

    def given_up() -> bool:
        nonlocal most
        for child in process.children():
            with contextlib.suppress(FileNotFoundError, LookupError):
                most = max(most, memory(child.pid, "VmHWM"))
        output = broker.service.output()
        return all(f"({topic}-0) as uncleanable" in output for topic in STORED)

    eventually(given_up, "the end of the cleaning", 120)
    print(f"the cleaner took {most / MIB:.1f} MiB at the most")
    assert 0 < most <= OTHER_PROCESS_MAX


PEAK_AT_EXIT = """
import atexit, pathlib, runpy, sys
atexit.register(lambda: sys.stderr.write(pathlib.Path("/proc/self/status").read_text()))
sys.argv[0] = "kpybroker"
runpy.run_module("kpybroker", run_name="__main__")
"""


def kpybroker_log(*arguments: str, look: Callable[[dict[str, Any]], T]) -> tuple[int, list[T], int]:
    """Exit code, what `look` makes of each row, and the most memory it had (that of `wait4` begins with the parent's).

    No row is kept: some have millions of headers.
    """
    command = [sys.executable, "-c", PEAK_AT_EXIT, "log", *arguments, "-o", "json"]
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            assert process.stdout is not None
            seen = [look(json.loads(line)) for line in process.stdout]
        errors.seek(0)
        (peak,) = (line for line in errors if line.startswith("VmHWM:"))
    return process.returncode, seen, int(peak.split()[1]) * 1024


@pytest.mark.wide
def test_verify_names_every_bomb_and_stays_small(bombed: Victim) -> None:
    for log in STORED:
        code, rows, peak = kpybroker_log("verify", str(bombed.broker.data_dir / f"{log}-0"), look=dict)
        named = {row["offset"] for row in rows if row["type"] == "finding" and row["severity"] == "error"}
        step, count = (RECORDS, 40) if log == "stored-2" else (1, 30)
        assert (code, named) == (1, {step * number for number in range(count)})
        print(f"{peak / MIB:.1f} MiB")
        assert peak <= OTHER_PROCESS_MAX


@pytest.mark.parametrize(
    "log", [pytest.param(log, marks=[] if log == "stored-1" else pytest.mark.wide) for log in STORED]
)
def test_dump_shows_every_batch_and_stays_small(bombed: Victim, log: str) -> None:
    _, rows, peak = kpybroker_log("dump", "--records", str(bombed.broker.data_dir / f"{log}-0"), look=dict)
    found = {row["baseOffset"] for row in rows if row["type"] == "batch"}
    step, count = (RECORDS, 40) if log == "stored-2" else (1, 30)
    assert {step * number for number in range(count)} <= found
    print(f"{peak / MIB:.1f} MiB")
    assert peak <= OTHER_PROCESS_MAX
