"""What `docs/internals/architecture.md` says of offsets and epochs, and the code asserts.

One machine takes a partition and its log through random operations of a leader and of a follower; the assertions of the
code judge each of them. The other tests break one invariant each, to show that its assertion is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kpybroker.broker.replication.partition import Partition
from kpybroker.core.replication.replica import IsrChange
from kpybroker.storage.log.append import ProducedBatches, UnexpectedAppendOffsetError, _write
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import parse_header
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker
from kpybroker.wire.records.validate import ValidatedRecords
from tests.support.examples import examples
from tests.support.storage.batches import NOW_MS, append_as_coordinator, batch, claiming, open_log
from tests.support.storage.lossy_files import LossyFiles
from tests.support.storage.small_log import SMALL

IDS = [1, 2, 3]
PATH = "/logs/t-0"
COMMIT = {True: ControlRecordType.COMMIT, False: ControlRecordType.ABORT}


class World:
    """The host of a partition: time, live brokers, and the controller."""

    def __init__(self) -> None:
        self.now = NOW_MS
        self.lag_time_max_ms = 1000
        self.asked: IsrChange | None = None

    def now_ms(self) -> int:
        return self.now

    def is_alive(self, broker_id: int) -> bool:
        return broker_id != 3

    def change_isr(self, partition: Partition, change: IsrChange) -> None:
        self.asked = change


@contextmanager
def may_refuse(*codes: ErrorCode) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.code not in codes:
            raise


class Replica(RuleBasedStateMachine):
    """Partition t-0 on broker 1, which leads, follows and restarts. What others send it is drawn, sensible or not."""

    def __init__(self) -> None:
        super().__init__()
        self.files = LossyFiles()
        self.world = World()
        self.epoch = 0
        self.led_to = -1
        self._open(0, 0, clean=True)

    def _open(self, log_start_offset: int, high_watermark: int, *, clean: bool) -> None:
        checkpoints = {"log_start_offset": log_start_offset, "had_clean_shutdown": clean}
        self.log = open_log(self.files, PATH, SMALL, verification_enabled=False, **checkpoints)
        self.log.update_high_watermark(high_watermark)
        self.partition = Partition("t", 0, b"t" * 16, 1, self.log, self.world)
        self.partition.follow(2, self.epoch, IDS)

    @property
    def leads(self) -> bool:
        return self.partition.leader is not None

    # --- orders, restarts

    @rule(isr=st.sets(st.sampled_from(IDS)), count=st.integers(1, 3))
    def lead(self, isr: set[int], count: int) -> None:
        """Also with an ISR that is not within the replicas, as the controller orders at the end of a reassignment."""
        self.epoch += 1
        self.partition.lead(self.epoch, self.epoch, sorted(isr | {1}), IDS[:count])

    @rule()
    def follow(self) -> None:
        self.epoch += 1
        self.led_to = -1
        self.partition.follow(2, self.epoch, IDS)

    @rule(start=st.integers(-6, 3), above=st.integers(-6, 3), clean=st.booleans())
    def restart(self, start: int, above: int, clean: bool) -> None:
        """Checkpoints may be older than the log or, if files were lost, ahead of it."""
        if clean:
            self.log.close()
        else:
            self.files = self.files.snapshot()
        self.epoch += 1
        self.led_to = -1
        end = self.log.log_end_offset
        self._open(max(0, end + start), max(0, end + above), clean=clean)

    # --- a leader

    @precondition(lambda self: self.leads)
    @rule(count=st.integers(1, 4), producer=st.sampled_from([-1, 7, 8]))
    def append(self, count: int, producer: int) -> None:
        """A plain batch, or one of a transaction."""
        values = [b"value"] * count
        fields = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True} if producer > 0 else {}
        produced = ProducedBatches(batch(*values, **fields), NOW_MS, 9)
        if producer > 0:  # as a coordinator writes: without sequences
            append_as_coordinator(self.log, produced.records, self.epoch)
            self.partition.advance_again()
        else:
            self.partition.append(produced, required_acks=1)

    @precondition(lambda self: self.leads)
    @rule(committed=st.booleans(), producer=st.sampled_from([7, 8]))
    def end_transaction(self, committed: bool, producer: int) -> None:
        with may_refuse(ErrorCode.NOT_ENOUGH_REPLICAS):
            self.partition.append_marker(EndTransactionMarker(COMMIT[committed], 0, NOW_MS), producer, 0)

    @precondition(lambda self: self.leads)
    @rule(follower=st.sampled_from([2, 3]), behind=st.integers(0, 6), start=st.integers(0, 10))
    def follower_fetches(self, follower: int, behind: int, start: int) -> None:
        leader = self.partition.leader
        assert leader is not None
        if follower in leader.followers:
            leader.fetched(follower, max(0, self.log.log_end_offset - behind), start, self.world.now)
            if leader.may_join(follower):
                self.world.change_isr(self.partition, leader.propose(leader.isr | {follower}))
            self.partition.advance_again()

    @precondition(lambda self: self.leads)
    @rule(agrees=st.booleans())
    def controller_responds(self, agrees: bool) -> None:
        leader, change = self.partition.leader, self.world.asked
        if leader is not None and change is not None and leader.pending is change:
            if agrees:
                leader.agreed(change, change.leader_epoch, change.partition_epoch + 1, change.isr)
            else:
                leader.refused(change, ErrorCode.INELIGIBLE_REPLICA)
            self.partition.advance_again()

    @precondition(lambda self: self.leads)
    @rule(above=st.integers(-4, 2))
    def delete_records(self, above: int) -> None:
        with may_refuse(ErrorCode.OFFSET_OUT_OF_RANGE):
            self.partition.delete_records(max(-1, self.log.high_watermark + above))

    # --- a follower

    @precondition(lambda self: not self.leads)
    @rule(
        gap=st.integers(-3, 5),
        producer=st.sampled_from([-1, 7]),
        delta=st.sampled_from([0, 0, 0, 2, -4]),
        above=st.integers(-5, 5),
        start=st.integers(-8, 8),
    )
    def append_as_follower(self, gap: int, producer: int, delta: int, above: int, start: int) -> None:
        """A leader's response, also one that contradicts itself or this log."""
        fields = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True} if producer > 0 else {}
        sent = batch(b"value", base_offset=max(0, self.log.log_end_offset + gap), **fields)
        records = memoryview(claiming(sent, last_offset_delta=delta, partition_leader_epoch=self.epoch))
        is_known = suppress(UnexpectedAppendOffsetError) if gap < 0 else nullcontext()
        end = self.log.log_end_offset
        with is_known, may_refuse(ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_SERVER_ERROR):
            self.partition.append_as_follower(records, max(0, end + above), max(0, end + start))

    @precondition(lambda self: not self.leads)
    @rule(above=st.integers(-9, 2))
    def truncate(self, above: int) -> None:
        """Also below the high watermark and the log start, as after an unclean election."""
        self.log.truncate_to(max(0, self.log.log_end_offset + above), now_ms=NOW_MS)

    @precondition(lambda self: not self.leads)
    @rule(above=st.integers(-9, 9))
    def start_again(self, above: int) -> None:
        self.log.truncate_fully_and_start_at(max(0, self.log.log_end_offset + above), now_ms=NOW_MS)

    # --- both

    @rule(passed_ms=st.sampled_from([10, 600, 2000]))
    def wait(self, passed_ms: int) -> None:
        self.world.now += passed_ms
        self.partition.maybe_shrink_isr()

    @rule(bound=st.integers(0, 2000))
    def retain(self, bound: int) -> None:
        self.log.update_config(replace(SMALL, retention_bytes=bound))
        self.log.delete_old_segments(NOW_MS)

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @invariant()
    def offsets_are_in_order(self) -> None:
        log = self.log
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
        if self.leads:
            assert log.high_watermark >= self.led_to, "the high watermark of a leader fell"
            self.led_to = log.high_watermark
        epochs = log.epochs.entries
        assert epochs == sorted(set(epochs))


Replica.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)
TestReplica = Replica.TestCase


def test_a_member_of_the_isr_that_is_no_replica_any_more_is_out_of_sync(caplog: pytest.LogCaptureFixture) -> None:
    """At the end of a reassignment the controller orders replicas without it before it removes it from the ISR."""
    replica = Replica()
    replica.lead({1, 2, 3}, 2)
    with caplog.at_level("INFO", logger="kafka.cluster.Partition"):
        replica.wait(2000)
    assert replica.world.asked is not None
    assert replica.world.asked.isr == (1,)
    assert "Shrinking ISR from 1,2,3 to 1." in caplog.text
    assert "(brokerId: 3, endOffset: unknown)" in caplog.text


# --- each assertion is there


@pytest.fixture
def made() -> Replica:
    """A follower with four committed records."""
    replica = Replica()
    replica.lead({1}, 1)
    replica.append(4, -1)
    replica.follow()
    return replica


def is_asserted(call: Callable[[], object], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        call()


@pytest.mark.parametrize(
    ("name", "value"), [("log_start_offset", 9), ("high_watermark", 9), ("log_end_offset", 1), ("log_start_offset", 5)]
)
def test_offsets_of_a_log_that_are_out_of_order_are_noticed(made: Replica, name: str, value: int) -> None:
    setattr(made.log, name, value)
    is_asserted(made.log.check_order, r"highWatermark=\d+, lastStableOffset=\d+, logStartOffset=\d+, logEndOffset=\d+")


def test_an_append_that_would_move_the_end_back_is_noticed(made: Replica) -> None:
    data = batch(b"value", base_offset=3)
    backwards = ValidatedRecords(data, parse_header(data), 3, 3, NOW_MS, 3, 1)
    is_asserted(lambda: _write(made.log, backwards, NOW_MS), "logEndOffset=4.*: the end would become 4")


def test_a_high_watermark_above_the_log_is_noticed(made: Replica) -> None:
    made.lead({1, 2}, 2)
    leader = made.partition.leader
    assert leader is not None
    leader.log_end_offset = leader.followers[2].log_end_offset = 9
    is_asserted(made.partition.advance_again, "logEndOffset=4.*: 9 was committed")


@pytest.mark.parametrize("offset", [3, 4])
def test_a_high_watermark_that_does_not_grow_is_never_committed(made: Replica, offset: int) -> None:
    made.lead({1}, 1)
    is_asserted(lambda: made.partition._commit_to(made.log, offset), f"highWatermark=4.*: {offset} was committed")


@pytest.mark.parametrize("epoch", [0, 2])
def test_an_order_of_an_epoch_that_is_not_newer_is_noticed(made: Replica, epoch: int) -> None:
    is_asserted(lambda: made.partition.follow(2, epoch, IDS), f"t-0: {epoch} after 2")


def test_a_leaders_response_while_this_broker_leads_is_noticed(made: Replica) -> None:
    made.lead({1}, 1)
    is_asserted(lambda: made.append_as_follower(0, -1, 0, 4, 0), "while this broker leads")
