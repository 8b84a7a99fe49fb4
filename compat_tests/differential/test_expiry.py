"""Time retention on real Kafka and on kpybroker: of batches whose headers are not true of their records (3.9.1), and of
the offsets of consumer groups (4.3.1).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compat_tests.differential.grouped import commit, committed, everything, part
from compat_tests.differential.kafka_4.steps import joins, leaves, view
from compat_tests.differential.kafka_4.steps import topic as consumer_topic
from compat_tests.differential.pair import Pair, skip_where_absent
from compat_tests.differential.records import Batch
from compat_tests.differential.script import Reference, Step, ask, script
from compat_tests.differential.scripts.configs import SET, TOPIC, change
from compat_tests.differential.scripts.offsets import offsets
from compat_tests.differential.steps import create, produce
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, offset
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


SUBSCRIBED, EMPTY, WITHOUT, CLASSIC, OPEN = (
    f"{{t}}-{kind}" for kind in ("subscribed", "empty", "without", "old", "open")
)
MEMBER: dict[str, Any] = {"member": "a", "generation": 2, "v": 9}


@pytest.fixture
def group_pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    skip_where_absent(request.config, Reference.KAFKA_4_3)
    options = request.config.option
    changes = {
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "1000",
        "group.consumer.max.session.timeout.ms": "600000",
        "group.consumer.session.timeout.ms": "600000",
    }
    started = Pair(tmp_path, options.broker, options.coordination, Reference.KAFKA_4_3, changes=changes)
    yield started
    started.close()


def a_group_with_offsets(group: str) -> list[Step]:
    """A member that reads one of two topics, and an offset in each."""
    return [
        joins("a", "{t}", group=group, v=1),
        commit(part(0, 5), group_id=group, **MEMBER),
        commit(part(0, 6), topic="{t}-other", group_id=group, **MEMBER),
    ]


def gone(topic: str, group: str) -> Step:
    return committed(0, topic=topic, group=group, v=7, until={"topics.0.partitions.0.committed_offset": -1})


@pytest.mark.wide
def test_the_same_offsets_of_consumer_groups_expire(group_pair: Pair) -> None:
    """Those of a topic that a member reads stay. A group without members goes with its last offset, or if it has none;
    not while a transaction has offsets of it.
    """
    only = {"groups": "group_id={t}-"}
    expiry = script(
        "group-expiry",
        ApiKey.OFFSET_FETCH,
        "offsets of consumer groups with and without members, of an open transaction, of a group of no members at all",
        consumer_topic(),
        consumer_topic("{t}-other", id_as="other"),
        a_group_with_offsets(SUBSCRIBED),
        a_group_with_offsets(EMPTY),
        leaves(group=EMPTY),
        commit(part(0, 7), group_id=CLASSIC, v=8),
        begin(timeout=900_000),
        add_offsets(OPEN, v=3),
        commit(part(0, 8), part(1, 8), group_id=OPEN, v=8),
        commit_offsets(offset(0, 9), group_id=OPEN, v=3),
        gone("{t}-other", SUBSCRIBED),
        gone("{t}", EMPTY),
        gone("{t}-other", EMPTY),
        gone("{t}", CLASSIC),
        committed(0, 1, group=OPEN, v=7, until={"topics.0.partitions.1.committed_offset": -1}),
        joins("a", "{t}", group=WITHOUT, v=1),
        leaves(group=WITHOUT),
        view(WITHOUT, until={"groups.0.error_code": 69}),
        *(everything(group, v=7) for group in (SUBSCRIBED, EMPTY, CLASSIC, OPEN)),
        ask(ApiKey.LIST_GROUPS, v=5, states_filter=[], types_filter=[], only=only),
        versions=(7, 7),
        reference=Reference.KAFKA_4_3,
    )
    difference = group_pair.compare(expiry, 7)
    assert not difference, difference


def _until(partition: int, wanted: dict[str, int]) -> Step:
    return replace(offsets(-2, partition), until=wanted)
