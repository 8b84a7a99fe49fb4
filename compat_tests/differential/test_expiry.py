"""Time retention of batches whose headers are not true of their records, on real Kafka 3.9.1 and on kpybroker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.records import Batch
from compat_tests.differential.script import Step, script
from compat_tests.differential.scripts.configs import SET, TOPIC, change
from compat_tests.differential.scripts.offsets import offsets
from compat_tests.differential.steps import create, produce
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec

NOW_MS = time.time_ns() // 1_000_000
DAY_MS = 24 * 3600 * 1000
FORMS = [
    (time_ms, maximum, codec)
    for time_ms in (NOW_MS, NOW_MS - DAY_MS)
    for maximum in (None, 0, 1000, -1, NOW_MS, NOW_MS - DAY_MS)
    for codec in (Codec.NONE, Codec.GZIP)
]


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = request.config.option
    directory = tmp_path_factory.mktemp("expiry")
    often = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
    started = Pair(directory, options.broker, options.coordination, changes=often)
    yield started
    started.close()


def filled(topic: str) -> list[Step]:
    """Three segments of two records in a partition for each form."""
    steps: list[Step] = [create(topic, len(FORMS), segment_bytes=120, file_delete_delay_ms=1)]
    for partition, (time_ms, maximum, codec) in enumerate(FORMS):
        claims = None if maximum is None else {"max_timestamp": maximum}
        values = [(b"k", b"v" * 20, time_ms - 1), (b"k", b"w" * 20, time_ms - 2)]
        batch = Batch(values, codec=codec, claims=claims)
        steps += [produce(topic, batch, partition=partition, on=f"client {partition}") for _ in range(3)]
    return [*steps, change(TOPIC, topic, (SET, "retention.ms", "3600000"))]


def test_time_removes_the_same_records(pair: Pair) -> None:
    """Every partition of old records is waited for; then a check has looked at those of now as well."""
    old = [partition for partition, (time_ms, _, _) in enumerate(FORMS) if time_ms < NOW_MS]
    gone = {"topics.0.partitions.0.offset": 6}
    expiry = script(
        "expiry",
        ApiKey.PRODUCE,
        "records of now stay, those of yesterday go, whatever their headers say",
        filled("{t}"),
        *(_until(partition, gone) for partition in old),
        *(offsets(special, partition) for partition in range(len(FORMS)) for special in (-2, -1, -3)),
        versions=(11, 11),
    )
    difference = pair.compare(expiry, 11)
    assert not difference, difference


def _until(partition: int, wanted: dict[str, int]) -> Step:
    return replace(offsets(-2, partition), until=wanted)
