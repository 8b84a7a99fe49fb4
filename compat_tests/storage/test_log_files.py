"""Kafka's own DumpLogSegments over every file that a loaded broker leaves behind. Runs last, so that all the
other tests of clients and tools have left their load; on its own it makes some first. Spark's end with their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.exchange import left_files
from compat_tests.exchange.files import check_verify, compacted_topics
from compat_tests.exchange.left_files import check_segments, dump, files_of, sections, undamaged
from compat_tests.support import quick
from compat_tests.support.clients import CLIENTS, CODECS, as_fields, python_call
from compat_tests.support.records import make_records
from compat_tests.support.services import Broker


@pytest.fixture(scope="module")
def stopped(broker: Broker) -> Iterator[Path]:
    """The data directory of the session's broker while it is down."""
    small = quick.admin_client(broker.bootstrap).list_topics(timeout=120).topics
    if "dumped" not in small:
        quick.create_topic(broker.bootstrap, "dumped", 1, segment_bytes=20_000, index_interval_bytes=100)
        for codec in CODECS:
            records = [as_fields(record) for record in make_records(codec, 500)]
            settings = {"batch.num.messages": 20, "enable.idempotence": True, "compression.type": codec}
            python_call(
                "confluent", "produce", bootstrap=broker.bootstrap, topic="dumped", records=records, settings=settings
            )
        quick.read(broker.bootstrap, [("dumped", 0)], 500 * len(CODECS), group="dumpers")
    with left_files.stopped(broker) as directory:
        yield directory


def test_segments(stopped: Path) -> None:
    assert check_segments(stopped) >= 5
    assert len(list(stopped.glob("dumped-0/*.log"))) > 5, "small segments roll"


def test_verify(stopped: Path) -> None:
    """`kpybroker log verify` finds nothing wrong in either broker's files."""
    assert check_verify(stopped, compacted_topics(stopped), is_clean=True) == []


def test_offset_indexes(stopped: Path) -> None:
    """Each entry of an offset index names a batch that stands where the entry says."""
    output = dump(files_of(stopped, "*/*.index"))
    undamaged(output)
    entries = [text for file, text in sections(output).items() if "dumped-0" in file]
    assert any(re.search(r"offset: [1-9]\d* position: \d+", text) for text in entries), "no entry in any index"


def test_time_indexes(stopped: Path) -> None:
    undamaged(dump(files_of(stopped, "*/*.timeindex")))


def test_producer_snapshots(stopped: Path) -> None:
    files = files_of(stopped, "*/*.snapshot")
    output = dump(files)
    undamaged(output)
    assert "producerId: " in output, "idempotent producers wrote, so some snapshot names one"


def test_offsets_topic(stopped: Path) -> None:
    """The records of groups and offsets decode as Kafka's own."""
    output = dump(sorted(stopped.glob("__consumer_offsets-*/*.log")), "--offsets-decoder")
    undamaged(output)
    assert '"group":"dumpers"' in output or "group=dumpers" in output or "offset_commit::group=dumpers" in output


def test_stored_codecs(stopped: Path) -> None:
    """What a producer compressed is stored as it was sent: each codec's topic holds that codec only."""
    found: dict[str, set[str]] = {}
    for file, text in sections(
        dump(sorted(stopped.glob("codec-*/*.log")) or sorted(stopped.glob("dumped-0/*.log")))
    ).items():
        named = re.search(r"/codec-(\w+)-", file)
        if named is not None:
            found.setdefault(named[1], set()).update(re.findall(r"compresscodec: (\w+)", text))
    for codec, stored in found.items():
        assert stored == {codec}, f"{codec} was stored as {stored}"


def test_default_producers_are_idempotent(stopped: Path) -> None:
    """Java's and librdkafka's defaults: Java writes with a producer id, librdkafka without one."""
    for client in CLIENTS:
        files = sorted(stopped.glob(f"codec-none-{client}-*/*.log"))
        if files and client.startswith("java"):
            assert not re.search(r"producerId: -1\b", dump(files)), f"{client} wrote without a producer id"


def test_directory(stopped: Path) -> None:
    """The files of Kafka's own layout, as a clean stop leaves them."""
    names = {path.name for path in stopped.iterdir() if path.is_file()}
    assert {
        "meta.properties",
        ".kafka_cleanshutdown",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    } <= names
    files = {path.name for path in (stopped / "dumped-0").iterdir()}
    assert {"partition.metadata", "leader-epoch-checkpoint", "00000000000000000000.log"} <= files
    meta = (stopped / "meta.properties").read_text()
    assert "broker.id=0" in meta
    assert "version=0" in meta
    assert re.search(r"^cluster.id=[\w-]{22}$", meta, re.MULTILINE)
    assert (stopped / "dumped-0" / "partition.metadata").read_text().startswith("version: 0\ntopic_id: ")
