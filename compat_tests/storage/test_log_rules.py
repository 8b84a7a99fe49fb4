"""Rolling, retention and validation by configuration, live changes included: which files there are afterwards, where
the log starts, and what producers receive. What the tests expect is what Kafka 3.9.1 does with the same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.conftest import Launcher, StartBroker
from compat_tests.support.services import Broker
from compat_tests.support.topics.raw_log import EARLIEST, RawLog, batch, codecs_of
from compat_tests.support.waiting import eventually
from kpybroker.wire.compression import CODEC_NAMES, Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set

NOW = int(time.time() * 1000)
HOUR = 3_600_000
LONG_AGO = NOW - 100 * HOUR  # within the retention.ms and segment.ms that are the default
SIZE = 200

MakeLog = Callable[..., RawLog]


@pytest.fixture(scope="module")
def eager_broker(launcher: Launcher) -> Iterator[Broker]:
    """Retention looks several times a second."""
    broker = launcher.broker(log_retention_check_interval_ms="200", log_initial_task_delay_ms="200")
    yield broker
    broker.service.kill()


@pytest.fixture
def make_log(eager_broker: Broker, name: str) -> MakeLog:
    def make(suffix: str = "", **config: Any) -> RawLog:
        return RawLog(eager_broker, name + suffix, **config)

    return make


@pytest.fixture
def after_retention(make_log: MakeLog) -> Callable[[], None]:
    """Until retention has looked at every log, from its first to its last: a log that it always empties shows it."""
    canary = make_log("-canary", retention_bytes=0, segment_bytes=SIZE)
    canary.write(NOW)

    def wait() -> None:
        for _ in range(2):
            (offset,) = canary.write(NOW)
            eventually(lambda: canary.start >= offset, "a round of retention")

    return wait


# --- rolling


def test_segments_are_as_long_as_segment_bytes_allows_live(make_log: MakeLog) -> None:
    log = make_log(segment_bytes=3 * SIZE)
    log.write(*[NOW] * 7)
    assert log.files() == {0: 3 * SIZE, 3: 3 * SIZE, 6: SIZE}
    log.alter(segment_bytes=2 * SIZE)
    log.write(*[NOW] * 3)
    assert log.segments == [0, 3, 6, 8]
    log.alter(segment_bytes=10 * SIZE)
    log.write(*[NOW] * 12)
    assert log.segments == [0, 3, 6, 8, 18]
    log.alter(segment_bytes=SIZE - 1)
    assert log.produce(batch(NOW, size=SIZE)).error is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.segments == [0, 3, 6, 8, 18]


@pytest.mark.parametrize("jitter", [0, 1000])
def test_segments_roll_by_the_time_between_their_records_live(make_log: MakeLog, jitter: int) -> None:
    """With a jitter a segment may be shorter by less than that, which cannot be when nothing has passed."""
    log = make_log(segment_ms=1000, segment_jitter_ms=jitter)
    times = [0, 0, 1001, 1001, 2002 + 1, 50] if jitter else [0, 1000, 1001, 2001, 2002 + 1, 50]
    log.write(*(LONG_AGO + at for at in times))
    assert log.segments == [0, 2, 4]
    log.alter(segment_ms=5000, segment_jitter_ms=0)
    log.write(LONG_AGO + 2003 + 4000, LONG_AGO + 2003 + 5001)
    assert log.segments == [0, 2, 4, 7]


def test_segments_roll_when_an_index_is_full(make_log: MakeLog) -> None:
    """An entry for each batch but the first; a time index takes entries of 12 bytes, and one less than fit."""
    log = make_log(segment_index_bytes=60, index_interval_bytes=0)
    log.write(*(NOW + at for at in range(12)))
    assert log.segments == [0, 5, 10]
    log.alter(segment_index_bytes=36)
    log.write(*(NOW + at for at in range(12, 24)))
    assert log.segments == [0, 5, 10, 15, 18, 21]


def test_index_entries_are_as_far_apart_as_the_interval_when_the_segment_began(make_log: MakeLog) -> None:
    log = make_log(segment_bytes=20 * SIZE, index_interval_bytes=0)
    log.write(*[NOW] * 20)
    log.alter(index_interval_bytes=3 * SIZE)
    log.write(*[NOW] * 40)
    log.alter(index_interval_bytes=10**6)
    log.write(*[NOW] * 21)
    indexes = log.files(".index")
    assert {base: size // 8 for base, size in indexes.items() if base < 80} == {0: 19, 20: 4, 40: 4, 60: 0}


@pytest.mark.parametrize("preallocate", ["true", "false"])
def test_rolled_segments_have_their_own_length_preallocated_or_not(make_log: MakeLog, preallocate: str) -> None:
    log = make_log(segment_bytes=5 * SIZE + 7, preallocate=preallocate)
    log.write(*[NOW] * 12)
    assert log.files() == {0: 5 * SIZE, 5: 5 * SIZE, 10: 5 * SIZE + 7 if preallocate == "true" else 2 * SIZE}
    log.alter(preallocate="false" if preallocate == "true" else "true")
    log.write(*[NOW] * 5)
    assert log.files() == {
        0: 5 * SIZE,
        5: 5 * SIZE,
        10: 5 * SIZE,
        15: 2 * SIZE if preallocate == "true" else 5 * SIZE + 7,
    }


# --- retention


def test_retention_bytes_keeps_whole_segments_live(make_log: MakeLog, after_retention: Callable[[], None]) -> None:
    log = make_log(segment_bytes=2 * SIZE, retention_bytes=5 * SIZE)
    log.write(*[NOW] * 12)
    # The oldest segment goes while the log would still have that many bytes without it.
    eventually(lambda: log.holds(6, 8, 10, start=6), "retention by size")
    after_retention()
    assert log.holds(6, 8, 10, start=6)
    log.alter(retention_bytes=4 * SIZE)
    eventually(lambda: log.holds(8, 10, start=8), "the new limit")
    log.alter(retention_bytes=-1)
    log.write(*[NOW] * 6)
    after_retention()
    assert log.holds(8, 10, 12, 14, 16, start=8)
    log.alter(retention_bytes=0)
    eventually(lambda: log.holds(18, start=18), "everything gone, and a new segment")
    log.write(NOW)
    eventually(lambda: log.holds(19, start=19), "what came later too")


def test_retention_ms_goes_by_the_largest_timestamp_live(
    make_log: MakeLog, after_retention: Callable[[], None]
) -> None:
    log = make_log(segment_bytes=2 * SIZE, retention_ms=-1)
    log.write(LONG_AGO, LONG_AGO, LONG_AGO, NOW, LONG_AGO, LONG_AGO, NOW + HOUR, NOW, LONG_AGO)
    after_retention()
    assert log.holds(0, 2, 4, 6, 8, start=0)
    log.alter(retention_ms=2 * HOUR)
    # From the oldest on, and only as far as the first that is to stay.
    eventually(lambda: log.holds(2, 4, 6, 8, start=2), "retention by time")
    after_retention()
    assert log.holds(2, 4, 6, 8, start=2)
    log.delete_records(4)
    eventually(lambda: log.holds(6, 8, start=6), "the next one is old too")


def test_a_log_whose_records_are_all_too_old_begins_again_at_its_end(make_log: MakeLog) -> None:
    log = make_log(retention_ms=HOUR)
    log.write(LONG_AGO, LONG_AGO, LONG_AGO)
    eventually(lambda: log.holds(3, start=3), "a new segment in place of the old one")
    assert log.write(NOW) == [3]
    assert log.holds(3, start=3)


def test_records_of_the_future_stay(make_log: MakeLog, after_retention: Callable[[], None]) -> None:
    log = make_log(retention_ms=1, segment_bytes=SIZE)
    log.write(NOW + HOUR, LONG_AGO)
    after_retention()
    assert log.holds(0, 1, start=0)


def test_delete_records_moves_the_start_and_retention_the_files(
    make_log: MakeLog, after_retention: Callable[[], None]
) -> None:
    log = make_log(segment_bytes=2 * SIZE, retention_ms=-1)
    log.write(*[NOW] * 6)
    assert log.delete_records(7) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records(3) is ErrorCode.NONE
    eventually(lambda: log.holds(2, 4, start=3), "the segment below the start is gone")
    assert log.fetch(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records(2) is ErrorCode.NONE
    assert log.delete_records(-1) is ErrorCode.NONE
    eventually(lambda: log.start == 6, "the start at the end")
    after_retention()
    # The active segment stays, whatever lies below the start.
    assert log.holds(4, start=6)
    assert log.write(NOW) == [6]


@pytest.mark.parametrize(
    ("policy", "kept", "deletes"),
    [
        ("delete", [6], True),
        ("compact", [0, 2, 4, 6], False),
        ("compact,delete", [6], True),
    ],
)
def test_what_a_cleanup_policy_removes(
    make_log: MakeLog, after_retention: Callable[[], None], policy: str, kept: list[int], deletes: bool
) -> None:
    """`min.cleanable.dirty.ratio` of 1 keeps the cleaner away."""
    log = make_log(segment_bytes=2 * SIZE, cleanup_policy=policy, retention_ms=-1, min_cleanable_dirty_ratio=1)
    for timestamp in (*[LONG_AGO] * 6, NOW):
        assert log.produce(batch(timestamp, size=SIZE, key=b"key")).error is ErrorCode.NONE
    log.alter(retention_ms=HOUR)
    if deletes:
        eventually(lambda: log.holds(*kept, start=6), "retention by time")
    after_retention()
    assert log.segments == kept
    assert log.delete_records(1) is (ErrorCode.NONE if deletes else ErrorCode.POLICY_VIOLATION)
    log.alter(cleanup_policy="compact" if deletes else "delete")
    if deletes:
        assert log.delete_records(7) is ErrorCode.POLICY_VIOLATION
        log.alter(retention_bytes=0)
        after_retention()
        assert log.segments == kept
    else:
        eventually(lambda: log.holds(6, start=6), "retention by time, now that it is asked for")


def test_removed_files_stay_for_file_delete_delay_ms_live(make_log: MakeLog) -> None:
    log = make_log(segment_bytes=SIZE, retention_bytes=SIZE, file_delete_delay_ms=600_000)
    log.write(*[NOW] * 3)
    eventually(lambda: log.holds(2, start=2), "retention by size")
    assert sorted(log.files(".log.deleted")) == [0, 1]
    assert sorted(log.files(".index.deleted")) == [0, 1]
    log.alter(file_delete_delay_ms=0)
    log.write(NOW)
    eventually(lambda: log.holds(3, start=3), "retention by size")
    eventually(lambda: sorted(log.files(".log.deleted")) == [0, 1], "what is removed without a delay")


def test_the_log_start_outlives_a_stop_and_a_kill(own_broker: StartBroker) -> None:
    broker = own_broker(log_flush_start_offset_checkpoint_interval_ms="200", log_initial_task_delay_ms="200")
    log = RawLog(broker, "kept")
    log.write(*[NOW] * 6)
    assert log.delete_records(2) is ErrorCode.NONE
    broker.restart()
    log = RawLog(broker, "kept", exists=True)
    eventually(lambda: log.lookup(EARLIEST).error_code == ErrorCode.NONE, "a leader that has heard that it is one")
    assert log.holds(0, start=2)
    eventually(lambda: log.delete_records(4) is ErrorCode.NONE, "a leader that knows it")
    checkpoint = broker.data_dir / "log-start-offset-checkpoint"
    eventually(lambda: "kept 0 4" in checkpoint.read_text(), "the checkpoint")
    broker.kill()
    broker.start()
    log = RawLog(broker, "kept", exists=True)
    eventually(lambda: log.lookup(EARLIEST).error_code == ErrorCode.NONE, "a leader that has heard that it is one")
    assert log.holds(0, start=4)
    out_of_range = ErrorCode.OFFSET_OUT_OF_RANGE  # Kafka may lose its place once more when its former session ends
    eventually(lambda: log.fetch(3).error_code == out_of_range, "offset 3, which is below the start")
    assert log.write(NOW) == [6]


def test_defaults_of_the_brokers_are_for_topics_without_their_own_live(own_broker: StartBroker) -> None:
    broker = own_broker(log_retention_check_interval_ms="200", log_initial_task_delay_ms="200")
    plain, own = RawLog(broker, "plain"), RawLog(broker, "own", retention_bytes=-1, cleanup_policy="delete")
    for log in (plain, own):
        log.write(*[NOW] * 4)
    plain.alter_brokers(log_retention_bytes=0)
    eventually(lambda: plain.holds(4, start=4), "retention by the new default")
    plain.alter_brokers(log_retention_bytes=None, log_cleanup_policy="compact")
    eventually(lambda: plain.produce(batch(NOW)).error is ErrorCode.INVALID_RECORD, "compaction by default")
    assert own.produce(batch(NOW)).error is ErrorCode.NONE
    plain.alter_brokers(log_cleanup_policy=None, log_message_timestamp_type="LogAppendTime")
    eventually(lambda: own.produce(batch(NOW)).append_time >= NOW, "the broker's time by default")
    own.alter(message_timestamp_type="CreateTime")
    assert own.produce(batch(NOW)).append_time == -1
    assert own.holds(0, start=0)


# --- validation


def test_null_keys_are_refused_while_a_topic_is_compacted(make_log: MakeLog) -> None:
    log = make_log()
    log.write(NOW)
    for policy, error in (
        ("compact", ErrorCode.INVALID_RECORD),
        ("delete", ErrorCode.NONE),
        ("compact,delete", ErrorCode.INVALID_RECORD),
        (None, ErrorCode.NONE),
    ):
        log.alter(cleanup_policy=policy)
        assert log.produce(batch(NOW)).error is error, policy
        assert log.produce(batch(NOW, key=b"k")).error is ErrorCode.NONE


def test_timestamps_are_bounded_live(make_log: MakeLog) -> None:
    log = make_log()
    assert log.produce(batch(LONG_AGO)).error is ErrorCode.NONE
    assert log.produce(batch(NOW + 1000 * HOUR)).error is ErrorCode.NONE
    for key, far in (
        ("message_timestamp_before_max_ms", LONG_AGO),
        ("message_timestamp_after_max_ms", NOW + 1000 * HOUR),
        ("message_timestamp_difference_max_ms", LONG_AGO),
        ("message_timestamp_difference_max_ms", NOW + 1000 * HOUR),
    ):
        log.alter(**{key: HOUR})
        assert log.produce(batch(far)).error is ErrorCode.INVALID_TIMESTAMP, key
        assert log.produce(batch(NOW)).error is ErrorCode.NONE
        log.alter(message_timestamp_type="LogAppendTime")
        assert log.produce(batch(far)).error is ErrorCode.NONE, key
        log.alter(message_timestamp_type=None, **{key: None})
        assert log.produce(batch(far)).error is ErrorCode.NONE, key


def test_the_broker_stamps_while_a_topic_asks_for_it(make_log: MakeLog) -> None:
    log = make_log()
    assert log.produce(batch(LONG_AGO)).append_time == -1
    log.alter(message_timestamp_type="LogAppendTime")
    stamped = log.produce(batch(LONG_AGO)).append_time
    assert stamped >= NOW
    assert (log.offset_at(LONG_AGO), log.offset_at(NOW - 1), log.offset_at(stamped + 1)) == (0, 1, -1)
    log.alter(message_timestamp_type="CreateTime")
    assert log.produce(batch(LONG_AGO)).append_time == -1


def test_max_message_bytes_counts_the_stored_batch_live(make_log: MakeLog) -> None:
    log = make_log()
    for limit in (SIZE, 300, 1000):
        log.alter(max_message_bytes=limit)
        assert log.produce(batch(NOW, size=limit)).error is ErrorCode.NONE
        assert log.produce(batch(NOW, size=limit + 1)).error is ErrorCode.MESSAGE_TOO_LARGE
    # What compresses well is counted as it came, and as it is stored.
    packed = batch(NOW, size=5000, codec=Codec.GZIP)
    assert log.produce(packed).error is ErrorCode.NONE
    log.alter(compression_type="uncompressed", max_message_bytes=1001)
    assert log.produce(packed).error is ErrorCode.MESSAGE_TOO_LARGE


def test_batches_are_stored_in_the_topics_codec_live(make_log: MakeLog) -> None:
    log = make_log(compression_type="producer")
    sent = list(Codec)
    expected: list[Codec] = []
    for own in ("producer", "uncompressed", *(name for name in CODEC_NAMES if name != "none")):
        log.alter(compression_type=own)
        for codec in sent:
            assert log.produce(batch(NOW, size=2000, codec=codec)).error is ErrorCode.NONE
        expected += sent if own == "producer" else [CODEC_NAMES.get(own, Codec.NONE)] * len(sent)
    assert codecs_of(log.fetch().records) == expected


def test_old_consumers_are_refused_while_a_topic_is_not_down_converted(make_log: MakeLog) -> None:
    log = make_log(message_downconversion_enable="false")
    log.write(NOW)
    old = bytes(build_message_set([Record(0, NOW, None, b"v")], 1))
    assert log.produce(old, version=2).error is ErrorCode.NONE
    for allowed, error in (("true", ErrorCode.NONE), ("false", ErrorCode.UNSUPPORTED_VERSION)):
        log.alter(message_downconversion_enable=allowed)
        for version in (0, 1, 2, 3):
            assert log.fetch(version=version).error_code == error, (allowed, version)
        for version in (4, 11):
            assert log.fetch(version=version).error_code == ErrorCode.NONE
