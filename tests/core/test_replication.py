"""Three replicas, their controller and their clients as one machine: lost messages, late orders, deaths and returns.

What must hold in every state: a record that was acknowledged is in the log of whoever leads in the latest epoch, at
its offset; where two logs have the same epoch at one offset they have the same record; no high watermark and no log end
of a leader goes back while it leads.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kpybroker.core.follower import FetchState, initial_state, truncation
from kpybroker.core.leader_epochs import EpochEndOffset, LeaderEpochCache
from kpybroker.core.replica import IsrChange, LeaderState
from kpybroker.wire.errors import ErrorCode

IDS = (1, 2, 3)
MIN_ISR = 2
LAG_MS = 1000
brokers = st.sampled_from(IDS)


class Record(NamedTuple):
    epoch: int
    value: int


class Order(NamedTuple):
    """A LeaderAndIsr on its way."""

    leader: int
    epoch: int
    partition_epoch: int
    isr: frozenset[int]


class Replica:
    """One broker's partition: what survives a kill (log, epochs, a checkpointed high watermark), and what does not."""

    def __init__(self, broker_id: int) -> None:
        self.id = broker_id
        self.log: list[Record] = []
        self.epochs = LeaderEpochCache()
        self.high_watermark = 0
        self.checkpoint = 0
        self.is_up = True
        self.leader: LeaderState | None = None
        self.following: FetchState | None = None
        self.leader_id = self.leader_epoch = -1

    @property
    def end(self) -> int:
        return len(self.log)

    def obey(self, order: Order, now: int) -> None:
        if order.epoch <= self.leader_epoch:
            return
        self.leader_id, self.leader_epoch = order.leader, order.epoch
        if order.leader == self.id:
            self.following = None
            self.epochs.assign(order.epoch, self.end)
            self.leader = self.leader or LeaderState(self.id, self.end, self.high_watermark)
            self.leader.log_end_offset = self.end
            self.leader.take_epoch(order.epoch, order.partition_epoch, IDS, order.isr, now)
        else:
            self.leader = None
            self.following = initial_state(
                "t",
                0,
                bytes(16),
                order.epoch,
                log_end_offset=self.end,
                high_watermark=self.high_watermark,
                latest_epoch=self.epochs.latest_epoch,
                truncates_on_fetch=True,
            )

    def cut(self, offset: int) -> None:
        del self.log[offset:]
        self.epochs.truncate_from_end(offset)
        self.high_watermark = min(self.high_watermark, offset)
        assert self.following is not None
        self.following.truncated(offset, self.epochs.latest_epoch, is_complete=True)

    def append(self, records: list[Record]) -> None:
        for record in records:
            if record.epoch != self.epochs.latest_epoch:
                self.epochs.assign(record.epoch, self.end)
            self.log.append(record)

    def die(self) -> None:
        self.is_up = False
        self.leader = self.following = None
        self.leader_id = self.leader_epoch = -1
        self.high_watermark = min(self.checkpoint, self.end)


class Replication(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.replicas = {broker_id: Replica(broker_id) for broker_id in IDS}
        self.now = 0
        self.value = 0
        self.state = Order(1, 0, 0, frozenset(IDS))
        self.orders: list[tuple[int, Order]] = []
        self.asked: list[tuple[int, IsrChange]] = []
        self.answers: list[tuple[int, IsrChange, Order | ErrorCode]] = []
        self.waiting: dict[int, tuple[int, int]] = {}  # value -> (offset, leader epoch)
        self.acknowledged: dict[int, int] = {}  # value -> offset
        self.before: dict[tuple[int, int], tuple[int, int]] = {}

    # --- the controller

    @initialize()
    def elect_first(self) -> None:
        self._tell()
        self.deliver_all_orders()

    def _tell(self) -> None:
        self.orders += [(broker_id, self.state) for broker_id in IDS if self.replicas[broker_id].is_up]

    def _elect(self, leader: int, isr: frozenset[int]) -> None:
        old = self.state
        self.state = Order(leader, old.epoch + 1, old.partition_epoch + 1, isr)
        self._tell()

    @rule(broker_id=brokers)
    def move_leadership(self, broker_id: int) -> None:
        if broker_id in self.state.isr and self.replicas[broker_id].is_up and broker_id != self.state.leader:
            self._elect(broker_id, self.state.isr)

    @rule(broker_id=brokers)
    def kill(self, broker_id: int) -> None:
        """The controller takes it out of the ISR, unless it is the last: then nobody leads until it is back."""
        replica = self.replicas[broker_id]
        if not replica.is_up:
            return
        replica.die()
        self.orders = [order for order in self.orders if order[0] != broker_id]
        self.answers = [answer for answer in self.answers if answer[0] != broker_id]
        isr = self.state.isr - {broker_id} or self.state.isr
        if isr == self.state.isr and broker_id in isr and self.state.leader == broker_id:
            self._elect(-1, isr)
        elif self.state.leader == broker_id:
            alive = sorted(i for i in isr if self.replicas[i].is_up)
            self._elect(alive[0] if alive else -1, isr)
        elif broker_id in self.state.isr:
            self._elect(self.state.leader, isr)

    @rule(broker_id=brokers)
    def come_back(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        if replica.is_up:
            return
        replica.is_up = True
        if self.state.leader == -1 and broker_id in self.state.isr:
            self._elect(broker_id, self.state.isr)
        else:
            self.orders.append((broker_id, self.state))

    @precondition(lambda self: self.orders)
    @rule(data=st.data())
    def deliver_an_order(self, data: st.DataObject) -> None:
        """In order for each broker, not between them."""
        self._deliver_order_to(data.draw(st.sampled_from(sorted({broker_id for broker_id, _ in self.orders}))))

    @rule()
    def deliver_all_orders(self) -> None:
        while self.orders:
            self._deliver_order_to(self.orders[0][0])

    def _deliver_order_to(self, broker_id: int) -> None:
        place = next(i for i, (to, _) in enumerate(self.orders) if to == broker_id)
        _, order = self.orders.pop(place)
        replica = self.replicas[broker_id]
        replica.obey(order, self.now)
        if replica.leader is None:  # those who wait there are told NOT_LEADER_OR_FOLLOWER
            self.waiting = {v: (o, e) for v, (o, e) in self.waiting.items() if self._serves(e)}
        else:
            self._advance(replica)

    def _serves(self, epoch: int) -> bool:
        return any(r.leader is not None and r.leader.leader_epoch == epoch for r in self.replicas.values())

    @precondition(lambda self: self.asked)
    @rule()
    def decide_an_isr_change(self) -> None:
        broker_id, change = self.asked.pop(0)
        answer: Order | ErrorCode
        if change.leader_epoch < self.state.epoch:
            answer = ErrorCode.FENCED_LEADER_EPOCH
        elif change.isr == self.state.isr:
            answer = self.state
        elif change.partition_epoch < self.state.partition_epoch:
            answer = ErrorCode.INVALID_UPDATE_VERSION
        elif not all(self.replicas[i].is_up for i in change.isr):
            answer = ErrorCode.INELIGIBLE_REPLICA
        else:
            self.state = answer = self.state._replace(partition_epoch=self.state.partition_epoch + 1, isr=change.isr)
        if self.replicas[broker_id].is_up:
            self.answers.append((broker_id, change, answer))

    @precondition(lambda self: self.answers)
    @rule(is_lost=st.booleans())
    def deliver_an_answer(self, is_lost: bool) -> None:
        broker_id, change, answer = self.answers.pop(0)
        if not is_lost:
            self._take_answer(broker_id, change, answer)
        elif self.replicas[broker_id].leader is not None:
            self.asked.append((broker_id, change))  # asked again

    def _take_answer(self, broker_id: int, change: IsrChange, answer: Order | ErrorCode) -> None:
        replica = self.replicas[broker_id]
        leader = replica.leader
        if leader is None:
            return
        if isinstance(answer, Order):
            leader.agreed(change, answer.epoch, answer.partition_epoch, answer.isr)
            self._advance(replica)
        else:
            leader.refused(change, answer)

    # --- the leaders

    def _advance(self, replica: Replica) -> None:
        leader = replica.leader
        assert leader is not None
        leader.advance(MIN_ISR, self.now, LAG_MS, lambda i: self.replicas[i].is_up)
        replica.high_watermark = leader.high_watermark
        for value, (offset, epoch) in list(self.waiting.items()):
            if epoch == leader.leader_epoch and offset < leader.high_watermark:
                del self.waiting[value]
                if len(leader.maximal_isr) >= MIN_ISR:
                    self.acknowledged[value] = offset

    @rule(broker_id=brokers, count=st.integers(1, 3))
    def produce(self, broker_id: int, count: int) -> None:
        """To whoever believes to lead: there may be two."""
        replica = self.replicas[broker_id]
        if replica.leader is None or len(replica.leader.isr) < MIN_ISR:
            return
        for _ in range(count):
            self.value += 1
            self.waiting[self.value] = (replica.end, replica.leader_epoch)
            replica.append([Record(replica.leader_epoch, self.value)])
        replica.leader.appended(replica.end)
        self._advance(replica)

    @rule(ms=st.sampled_from([100, 600, 1500]))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        for replica in self.replicas.values():
            if replica.leader is not None:
                late = replica.leader.out_of_sync(self.now, LAG_MS)
                if late:
                    self.asked.append((replica.id, replica.leader.propose(replica.leader.isr - late)))

    @rule(broker_id=brokers)
    def write_checkpoint(self, broker_id: int) -> None:
        self.replicas[broker_id].checkpoint = self.replicas[broker_id].high_watermark

    # --- the followers

    @rule(times=st.integers(1, 2), who=st.sampled_from([IDS, (1, 2), (2, 3), (1, 3)]))
    def replicate(self, times: int, who: tuple[int, ...]) -> None:
        for _ in range(times):
            for broker_id in who:
                self.fetch_once(broker_id, 10, is_answer_lost=False)

    @rule(broker_id=brokers, count=st.integers(0, 4), is_answer_lost=st.booleans())
    def fetch(self, broker_id: int, count: int, is_answer_lost: bool) -> None:
        self.fetch_once(broker_id, count, is_answer_lost=is_answer_lost)

    def fetch_once(self, broker_id: int, count: int, *, is_answer_lost: bool) -> None:
        follower = self.replicas[broker_id]
        state = follower.following
        if state is None or not follower.is_up or follower.leader_id == -1:
            return
        if state.is_truncating:
            follower.cut(state.fetch_offset)
        replica = self.replicas[follower.leader_id]
        leader = replica.leader
        if leader is None or leader.leader_epoch != state.leader_epoch:
            return  # not there, or fenced
        if state.last_fetched_epoch >= 0:
            diverging = replica.epochs.end_offset_for(state.last_fetched_epoch, replica.end)
            if diverging.epoch < state.last_fetched_epoch or diverging.end_offset < state.fetch_offset:
                if not is_answer_lost:
                    self._diverge(follower, state, diverging)
                return
        if state.fetch_offset > replica.end:
            if not is_answer_lost:
                follower.cut(replica.end)
            return
        leader.fetched(follower.id, state.fetch_offset, 0, self.now)
        if leader.may_join(follower.id) and follower.is_up:
            self.asked.append((replica.id, leader.propose(leader.isr | {follower.id})))
        self._advance(replica)
        if is_answer_lost:
            return
        records = replica.log[state.fetch_offset : state.fetch_offset + count]
        follower.append(records)
        state.fetched(follower.end, leader.high_watermark, follower.epochs.latest_epoch)
        follower.high_watermark = min(leader.high_watermark, follower.end)

    @staticmethod
    def _diverge(follower: Replica, state: FetchState, diverging: EpochEndOffset) -> None:
        own = follower.epochs.end_offset_for(diverging.epoch, follower.end)
        follower.cut(truncation(diverging, own, state.fetch_offset, follower.end).offset)

    # --- what must hold

    def teardown(self) -> None:
        """Left alone for a while, all brokers up, the cluster is whole again: equal logs, all of it committed."""
        for broker_id in IDS:
            self.come_back(broker_id)
        for _ in range(8):
            self.deliver_all_orders()
            while self.asked:
                self.decide_an_isr_change()
            for broker_id, change, answer in self.answers:
                self._take_answer(broker_id, change, answer)
            self.answers.clear()
            self.now += 10
            self.replicate(2, IDS)
        leader = self.replicas[self.state.leader]
        assert self.state.isr == frozenset(IDS)
        for replica in self.replicas.values():
            assert replica.log == leader.log
            assert replica.high_watermark == leader.end
        self.what_was_acknowledged_is_led()

    @invariant()
    def what_was_acknowledged_is_led(self) -> None:
        for replica in self.replicas.values():
            if replica.leader is not None and replica.leader_epoch == self.state.epoch:
                for value, offset in self.acknowledged.items():
                    assert offset < replica.end, f"{value} at {offset} is lost"
                    assert replica.log[offset].value == value

    @invariant()
    def logs_match(self) -> None:
        for one in self.replicas.values():
            for other in self.replicas.values():
                for a, b in zip(one.log, other.log, strict=False):
                    assert a == b or a.epoch != b.epoch

    @invariant()
    def epochs_tell_the_log(self) -> None:
        for replica in self.replicas.values():
            for offset, record in enumerate(replica.log):
                assert replica.epochs.epoch_for_offset(offset) == record.epoch

    @invariant()
    def leaders_do_not_go_back(self) -> None:
        for replica in self.replicas.values():
            if replica.leader is None:
                continue
            key = (replica.id, replica.leader_epoch)
            end, high_watermark = self.before.get(key, (0, 0))
            assert replica.end >= end
            assert replica.leader.high_watermark >= high_watermark
            assert replica.leader.high_watermark <= replica.end
            self.before[key] = replica.end, replica.leader.high_watermark


TestReplication = Replication.TestCase
TestReplication.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
