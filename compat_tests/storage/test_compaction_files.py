"""The same log, cleaned by Kafka 3.9.1 and by us: the files that are left say the same to Kafka's DumpLogSegments.

Always both, whatever `--broker` says. The logs are made here: plain, idempotent and transactional batches with
tombstones, in old formats too. They are cleaned, get more of the same load, and are cleaned again, which is when
tombstones and markers go whose delete horizon the first cleaning set.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from compat_tests.exchange.left_files import dump, sections, undamaged
from compat_tests.support import quick
from compat_tests.support.services import Broker, ZooKeeper
from compat_tests.support.waiting import eventually
from kpybroker.config.topic import LogConfig
from kpybroker.core.log.cleaner_plan import log_to_clean
from kpybroker.storage.disk.checkpoints import decode_offsets
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.settings import LogSettings
from kpybroker.wire.compression import Codec
from tests.support.storage.cleaning import clean_log
from tests.support.storage.keyed_load import CODECS, KeyedLoad

TOPIC = "cleaned"
PARTITIONS = 6
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "12000",
    "index.interval.bytes": "500",
    "delete.retention.ms": "1",
    "min.cleanable.dirty.ratio": "0.0001",
    "max.compaction.lag.ms": "86400000",
}
DEDUPE_BYTES = 134_217_728
STEPS = 90
CHANGED_MS = 1_600_000_000_000


def load_of(partition: int) -> KeyedLoad:
    """Even partitions are not compressed, so that sizes can be compared; the last two have batches of magic 0 and 1."""
    return KeyedLoad(
        Random(partition),
        keys=8,
        legacy=partition >= PARTITIONS - 2,
        codecs=CODECS if partition % 2 else (Codec.NONE,),
        now_ms=int(time.time() * 1000) - 600_000,
    )


def open_log(directory: Path) -> Log:
    (directory / "leader-epoch-checkpoint").unlink(missing_ok=True)
    config = LogConfig.from_props(CONFIG)
    now_ms = int(time.time() * 1000)
    log = Log(local_files(), str(directory), config, now_ms=now_ms, settings=LogSettings(verification_enabled=False))
    log.update_high_watermark(log.log_end_offset)
    return log


def add_load(directory: Path, load: KeyedLoad) -> int:
    """More load for a log that no process has open; up to which offset it can be cleaned then."""
    log = open_log(directory)
    for _ in range(STEPS):
        load.step(log)
    load.end_all(log)
    log.roll(load.now_ms)
    log.update_high_watermark(log.log_end_offset)
    uncleanable = log_to_clean(log, load.now_ms).first_uncleanable_offset
    log.close()
    for file in directory.glob("*.log"):  # by this the age of tombstones in old formats is judged
        changed_s = CHANGED_MS / 1000 + int(file.stem)
        os.utime(file, (changed_s, changed_s))
    return uncleanable


def clean_with_kafka(broker: Broker, wanted: dict[int, int]) -> None:
    """Let it run until it has cleaned every partition up to these offsets."""
    path = broker.data_dir / "cleaner-offset-checkpoint"

    def cleaned() -> bool:
        offsets = decode_offsets(path.read_bytes(), str(path)) if path.exists() else {}
        return {part.partition: offset for part, offset in offsets.items() if part.topic == TOPIC} == wanted

    broker.start()
    try:
        eventually(cleaned, f"a cleaner checkpoint of {wanted}", 180)
    finally:
        broker.stop()


def clean_with_ours(directory: Path, cleaner_offset: int | None) -> int:
    log = open_log(directory)
    log.cleaner_offset = cleaner_offset
    done = clean_log(log, now_ms=int(time.time() * 1000), map_bytes=DEDUPE_BYTES)
    assert done is not None
    log.close()
    for path in directory.glob("*.deleted"):
        path.unlink()
    return done.end_offset


HORIZON = re.compile(r"deleteHorizonMs: OptionalLong\[\d+\]")
CRC = re.compile(r" crc: \d+")
LAYOUT = re.compile(r" (position|size): \d+")


def comparable(text: str, *, is_compressed: bool) -> list[str]:
    """The dump of a segment without what must differ: when it was cleaned, and what a codec makes of the same bytes."""
    lines = []
    for line in text.splitlines():
        if HORIZON.search(line):
            line = CRC.sub("", HORIZON.sub("deleteHorizonMs: set", line))
        if is_compressed:
            line = LAYOUT.sub("", CRC.sub("", line))
        lines.append(line)
    return lines


def dumped(directories: Sequence[Path]) -> list[dict[str, list[str]]]:
    """Of each partition by segment: its records as Kafka reads them."""
    files = [file for directory in directories for file in sorted(directory.glob("*.log"))]
    output = dump(files, "--deep-iteration", "--print-data-log", compacted={TOPIC})
    assert "isvalid: false" not in output
    found: list[dict[str, list[str]]] = [{} for _ in directories]
    for name, text in sections(output).items():
        partition = directories.index(Path(name).parent)
        found[partition][Path(name).name] = comparable(text, is_compressed=bool(partition % 2))
    return found


def check_alike(ours: Sequence[Path], kafkas: Sequence[Path]) -> str:
    """What Kafka reads in both."""
    seen = ""
    for partition, (found, expected) in enumerate(zip(dumped(ours), dumped(kafkas), strict=True)):
        assert expected
        assert found.keys() == expected.keys()
        for name, lines in expected.items():
            own, other = ours[partition] / name, kafkas[partition] / name
            assert found[name] == lines, f"{TOPIC}-{partition}/{name}"
            assert content_of(own.with_suffix(".txnindex")) == content_of(other.with_suffix(".txnindex"))
            assert own.stat().st_mtime_ns // 10**6 == other.stat().st_mtime_ns // 10**6
            seen += "\n".join(lines)
    indexes = [file for directory in ours for kind in ("*.index", "*.timeindex") for file in directory.glob(kind)]
    undamaged(dump(sorted(indexes), "--index-sanity-check"))
    return seen


def content_of(file: Path) -> bytes:
    """Nothing and no file are the same of a transaction index."""
    return file.read_bytes() if file.exists() else b""


def copy_log(source: Path, target: Path) -> None:
    """Everything but the topic's id, which the target's owner has given it."""
    for file in target.glob("0*"):
        file.unlink()
    for file in source.iterdir():
        if file.name != "partition.metadata":
            shutil.copy2(file, target)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Broker]:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    zookeeper.start()
    keys = {"log.cleaner.backoff.ms": "100", "log.cleaner.dedupe.buffer.size": str(DEDUPE_BYTES)}
    broker = Broker("kafka", tmp_path / "kafka", f"{zookeeper.connect}/cleaned", keys)
    yield broker
    broker.service.kill()
    zookeeper.stop()


@pytest.mark.wide
def test_kafka_and_kpybroker_leave_the_same(kafka: Broker, tmp_path: Path) -> None:
    kafka.start()
    settings: dict[str, Any] = {key.replace(".", "_"): value for key, value in CONFIG.items()}
    quick.create_topic(kafka.bootstrap, TOPIC, PARTITIONS, **settings)
    kafka.stop()
    ours = [tmp_path / "ours" / f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
    kafkas = [kafka.data_dir / f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
    loads = [load_of(partition) for partition in range(PARTITIONS)]
    cleaned: list[int | None] = [None] * PARTITIONS
    seen = ""
    for _ in range(3):
        wanted = {}
        for partition, load in enumerate(loads):
            same = deepcopy(load)
            wanted[partition] = add_load(ours[partition], load)
            if cleaned[partition] is None:
                copy_log(ours[partition], kafkas[partition])
            else:
                assert add_load(kafkas[partition], same) == wanted[partition]
        clean_with_kafka(kafka, wanted)
        for partition in range(PARTITIONS):
            cleaned[partition] = clean_with_ours(ours[partition], cleaned[partition])
        seen += check_alike(ours, kafkas)
    for rare in ("deleteHorizonMs: set", "count: 0 ", "isControl: true", "compresscodec: zstd", "magic: 0", "magic: 1"):
        assert rare in seen, f"{rare} came up nowhere: the load is too simple"
