"""A partition on three brokers as one machine: delayed and lost messages, late orders, crashes and returns.

What must hold in every state, with a leader and with brokers that wrongly believe to lead:

- A record that was acknowledged with acks=all is in the log of every replica in sync, at its offset.
- No high watermark is above the log end of a replica in sync, and below it all those logs are the same.
- If two logs have the same epoch at one offset they have the same record, and each log's epochs match its records.
- While a replica leads, neither its high watermark nor its log end goes back, and the high watermark does not rise with
  an ISR below min.insync.replicas. No follower truncates what is committed.
- A replica that joins the ISR has reached the high watermark and the start of the leader's epoch. A replica that is
  removed has not been at the leader's log end for `replica.lag.time.max.ms`.
- No log start is above what was deleted, and no low watermark above a log start.
- A fetch in another epoch than the leader's is refused.

Histories are drawn by weight from a seed: `-k "[17]"` runs number 17 again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest

from kpybroker.broker.replication.partition import Partition
from kpybroker.core.replication.replica import IsrChange, Verdict
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.brokers.replicated_partition import (
    IDS,
    LAG_MS,
    MIN_ISR,
    Fetch,
    Node,
    Order,
    Produced,
    Response,
    World,
)

HISTORIES = 60
STEPS = 150
OF_ANOTHER_EPOCH = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)


class Replication:
    """The history is the controller; only replicas in the ISR are elected."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(truncates_on_fetch=self.random.random() < 0.7)
        self.world.on_isr_change = self.check_isr_change
        self.nodes = self.world.nodes
        self.state = Order(1, 0, 0, frozenset(IDS))
        self.value = 0
        self.orders: list[tuple[int, Order]] = []
        self.responses: list[tuple[Partition, IsrChange, Order | ErrorCode]] = []
        self.fetches: list[Fetch] = []
        self.fetched: list[Response] = []
        self.waiting: list[Produced] = []
        self.acknowledged: dict[int, int] = {}
        """Value by offset."""
        self.deleted_below = 0
        self.epoch_starts: dict[int, int] = {}
        self.caught_up: dict[tuple[int, int], int] = {}
        """By leader epoch and follower: when it last had everything."""
        self.last_fetch: dict[tuple[int, int], tuple[int, int]] = {}
        """By leader epoch and follower: the time, and the leader's log end then."""
        self.before: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By leader and epoch: log end, high watermark, size of the ISR."""
        self._send_orders()
        self.deliver_orders(IDS)

    def play(self, steps: int) -> None:
        actions = [action for action, weight in ACTIONS.items() for _ in range(weight)]
        for _ in range(steps):
            self.random.choice(actions)(self)
            self.check()
        self.become_whole()

    def _broker(self) -> int:
        return self.random.choice(IDS)

    def _some_brokers(self) -> list[int]:
        return [broker_id for broker_id in IDS if self.random.random() < 0.6]

    def _leader(self) -> Node | None:
        """The broker that leads in the latest epoch and knows it."""
        node = self.nodes.get(self.state.leader)
        is_leading = node is not None and node.leads and node.partition.leader_epoch == self.state.epoch
        return node if is_leading else None

    def check(self) -> None:
        self.what_was_acknowledged_is_in_every_log_in_sync()
        self.what_is_committed_is_in_every_log_in_sync()
        self.logs_and_epochs_match()
        self.leaders_never_go_back()

    # --- the controller

    def _send_orders(self) -> None:
        self.orders += [(broker_id, self.state) for broker_id in IDS if self.nodes[broker_id].is_up]

    def _elect(self, leader: int, isr: frozenset[int]) -> None:
        self.state = Order(leader, self.state.epoch + 1, self.state.partition_epoch + 1, isr)
        self._send_orders()

    def move_leadership(self) -> None:
        broker_id = self._broker()
        if broker_id in self.state.isr and self.nodes[broker_id].is_up and broker_id != self.state.leader:
            self._elect(broker_id, self.state.isr)

    def kill(self) -> None:
        """The controller removes it from the ISR, unless it is the last: then there is no leader until it is back."""
        broker_id = self._broker()
        node = self.nodes[broker_id]
        if not node.is_up:
            return
        node.kill()
        self.orders = [order for order in self.orders if order[0] != broker_id]
        isr = self.state.isr - {broker_id}
        if not isr:
            self._elect(-1, self.state.isr)
        elif broker_id == self.state.leader:
            alive = sorted(other for other in isr if self.nodes[other].is_up)
            self._elect(alive[0] if alive else -1, isr)
        elif broker_id in self.state.isr:
            self._elect(self.state.leader, isr)

    def restart_the_dead(self) -> None:
        for broker_id in IDS:
            if not self.nodes[broker_id].is_up:
                self._boot(broker_id)

    def _boot(self, broker_id: int) -> None:
        self.nodes[broker_id].boot()
        if self.state.leader == -1 and broker_id in self.state.isr:
            self._elect(broker_id, self.state.isr)
        else:
            self.orders.append((broker_id, self.state))

    def deliver_some_orders(self) -> None:
        self.deliver_orders(self._some_brokers())

    def deliver_orders(self, to: Iterable[int]) -> None:
        """In order for each broker, not between them."""
        for broker_id in to:
            while any(order[0] == broker_id for order in self.orders):
                self._deliver_order_to(broker_id)

    def _deliver_order_to(self, broker_id: int) -> None:
        place = next(i for i, (to, _) in enumerate(self.orders) if to == broker_id)
        _, order = self.orders.pop(place)
        node = self.nodes[broker_id]
        if order.leader == broker_id and order.epoch > node.partition.leader_epoch:
            self.epoch_starts[order.epoch] = node.log.log_end_offset
            for follower in IDS:
                self.caught_up[order.epoch, follower] = self.world.now if follower in order.isr else 0
        node.obey(order)

    def decide_an_isr_change(self) -> None:
        if not self.world.asked:
            return
        partition, change = self.world.asked.pop(0)
        response: Order | ErrorCode
        if change.leader_epoch < self.state.epoch:
            response = ErrorCode.FENCED_LEADER_EPOCH
        elif frozenset(change.isr) == self.state.isr:
            response = self.state
        elif change.partition_epoch < self.state.partition_epoch:
            response = ErrorCode.INVALID_UPDATE_VERSION
        elif not all(self.nodes[broker_id].is_up for broker_id in change.isr):
            response = ErrorCode.INELIGIBLE_REPLICA
        else:
            self.state = response = self.state._replace(
                partition_epoch=self.state.partition_epoch + 1, isr=frozenset(change.isr)
            )
        self.responses.append((partition, change, response))

    def deliver_a_response(self) -> None:
        if self.responses:
            self._deliver_response(is_lost=self.random.random() < 0.2)

    def settle_isr_changes(self) -> None:
        while self.world.asked:
            self.decide_an_isr_change()
        while self.responses:
            self._deliver_response(is_lost=False)

    def _deliver_response(self, *, is_lost: bool) -> None:
        partition, change, response = self.responses.pop(0)
        leader = partition.leader
        if leader is None:
            return
        if is_lost:
            self.world.asked.append((partition, change))  # asked again
        elif isinstance(response, Order):
            if leader.agreed(change, response.epoch, response.partition_epoch, response.isr) is Verdict.COMMITTED:
                partition.isr_committed()
        else:
            leader.refused(change, response)

    # --- the leaders

    def produce(self) -> None:
        """To a broker that believes to lead: there may be two."""
        self._produce(self.nodes[self._broker()], self.random.randint(1, 3))

    def _produce(self, node: Node, count: int) -> None:
        for _ in range(count if node.is_up and node.leads else 0):
            leader = node.partition.leader
            assert leader is not None
            self.value += 1
            if len(leader.isr) < MIN_ISR:
                with pytest.raises(KafkaError, match="insufficient"):
                    node.write(self.value)
            else:
                self.waiting.append(node.write(self.value))

    def delete_records(self) -> None:
        """All that is committed, at the leader."""
        leader = self._leader()
        if leader is not None:
            self.deleted_below = max(self.deleted_below, leader.partition.delete_records(-1))

    def time_passes(self) -> None:
        self._pass(self.random.choice((100, 600, 1500)))

    def _pass(self, ms: int) -> None:
        self.world.now += ms
        for node in self.nodes.values():
            leader = node.partition.leader
            if leader is None or not node.is_up:
                continue
            is_free = leader.pending is None
            node.partition.maybe_shrink_isr()
            if is_free and leader.pending is None:
                for replica in leader.isr - {node.id}:
                    is_at_end = leader.followers[replica].log_end_offset == node.log.log_end_offset
                    late_ms = self.world.now - self.caught_up[leader.leader_epoch, replica]
                    assert is_at_end or late_ms <= LAG_MS, f"{replica} stays in the ISR though it is late"

    def write_checkpoint(self) -> None:
        node = self.nodes[self._broker()]
        node.checkpoint = node.log.high_watermark

    # --- sequences of several actions

    def an_epoch(self) -> None:
        """Records are written, some brokers copy them, another one is elected, and some get the order."""
        self._write_and_copy(self._some_brokers())
        self.move_leadership()
        self.deliver_orders(self._some_brokers())

    def _write_and_copy(self, who: Iterable[int]) -> None:
        leader = self._leader()
        if leader is not None:
            self._produce(leader, self.random.randint(1, 3))
        self.replicate(who)

    def one_is_away(self) -> None:
        """All but one continue for a while. Their ISR changes may be decided, and the leader may get the result."""
        away = self._broker()
        others = [broker_id for broker_id in IDS if broker_id != away]
        for _ in range(4):
            self._write_and_copy(others)
            self.replicate(others)
            self._pass(600)
            self.check()
        if self.random.random() < 0.6:
            self.decide_an_isr_change()
            if self.random.random() < 0.6:
                self.settle_isr_changes()

    def one_catches_up(self) -> None:
        """And joins the ISR, perhaps before the leader knows."""
        who = self._broker()
        self.replicate([who] * self.random.randint(1, 3))
        if self.random.random() < 0.7:
            self.decide_an_isr_change()

    # --- the followers

    def copy(self) -> None:
        self.replicate(self._some_brokers())

    def replicate(self, who: Iterable[int]) -> None:
        for broker_id in who:
            self._fetch_at_once(self.nodes[broker_id])

    def _fetch_at_once(self, node: Node) -> None:
        self._truncate(node)
        if node.following is not None and not node.following.is_truncating and node.partition.leader_id != -1:
            response = self._serve(node.ask(), 10)
            if response is not None:
                node.take(response)

    def send_a_fetch(self) -> None:
        node = self.nodes[self._broker()]
        self._truncate(node)
        in_flight = [*self.fetches, *(response.fetch for response in self.fetched)]
        is_asking = any(fetch.state is node.following for fetch in in_flight)
        if node.following is None or node.following.is_truncating or node.partition.leader_id == -1 or is_asking:
            return
        self.fetches.append(node.ask())

    def deliver_a_fetch(self) -> None:
        """At any time: its sender, or the leader, may be in another epoch by now."""
        if self.fetches:
            fetch = self.fetches.pop(self.random.randrange(len(self.fetches)))
            response = self._serve(fetch, self.random.randint(0, 4))
            if response is not None and self.random.random() < 0.8:
                self.fetched.append(response)

    def deliver_records(self) -> None:
        if self.fetched:
            response = self.fetched.pop(self.random.randrange(len(self.fetched)))
            self.nodes[response.fetch.follower].take(response)

    def _serve(self, fetch: Fetch, count: int) -> Response | None:
        node = self.nodes[fetch.leader]
        if not node.is_up:
            return None
        epoch, end = node.partition.leader_epoch, node.log.log_end_offset
        response = node.serve(fetch, count)
        if fetch.asked.current_leader_epoch != epoch:
            assert response.error in OF_ANOTHER_EPOCH, "a fetch of another epoch was served"
        elif response.error is ErrorCode.NONE and response.data.diverging_epoch is None:
            key, offset = (epoch, fetch.follower), fetch.asked.fetch_offset
            then, end_then = self.last_fetch.get(key, (0, self.epoch_starts[epoch]))
            if offset >= min(end, end_then):
                self.caught_up[key] = max(self.caught_up[key], self.world.now if offset >= end else then)
            self.last_fetch[key] = self.world.now, max(end, end_then)
        return response

    def _truncate(self, node: Node) -> None:
        """Before it may fetch, if fetches do not report divergence: to the high watermark or the leader's epoch end."""
        state = node.following
        if state is None or not state.is_truncating:
            return
        if node.log.latest_epoch < 0:
            node.cut(state.fetch_offset)
            return
        leader = self.world.leader_of(node)
        if leader is not None:
            node.truncate_at_divergence(leader.log.end_offset_for_epoch(node.log.latest_epoch))

    # --- what must hold

    def check_isr_change(self, partition: Partition, change: IsrChange) -> None:
        leader = partition.leader
        assert leader is not None
        for replica in set(change.isr) - leader.isr:
            end = self.nodes[replica].log.log_end_offset
            assert end >= partition.high_watermark, f"{replica} joins the ISR below the high watermark"
            assert end >= self.epoch_starts[change.leader_epoch], f"{replica} joins below the start of the epoch"
        for replica in leader.isr - set(change.isr):
            late_ms = self.world.now - self.caught_up[change.leader_epoch, replica]
            assert late_ms > LAG_MS, f"{replica} was removed from the ISR {late_ms} ms after it was at the end"
        assert partition.broker_id in change.isr

    def become_whole(self) -> None:
        """With all brokers up and no more faults, all logs become equal and fully committed."""
        self.restart_the_dead()
        self.fetches.clear()
        self.fetched.clear()
        for _ in range(8):
            self.deliver_orders(IDS)
            self.settle_isr_changes()
            self.replicate(IDS * 2)
            self._pass(10)
            self.check()
        leader = self.nodes[self.state.leader]
        assert self.state.isr == frozenset(IDS)
        for node in self.nodes.values():
            start = node.log.log_start_offset
            assert start >= leader.log.log_start_offset  # above it, if a former leader's was higher
            assert node.records == {offset: found for offset, found in leader.records.items() if offset >= start}
            assert node.log.high_watermark == leader.log.log_end_offset
        assert leader.partition.low_watermark == leader.log.log_start_offset

    def what_was_acknowledged_is_in_every_log_in_sync(self) -> None:
        self._collect_acknowledged()
        for broker_id in self.state.isr:
            node = self.nodes[broker_id]
            for offset, value in self.acknowledged.items():
                if offset >= node.log.log_start_offset:
                    found = node.records.get(offset)
                    assert found is not None, f"{value} at {offset} is missing on {broker_id}"
                    assert found.value == value

    def _collect_acknowledged(self) -> None:
        """Those for which `Partition.wait_high_watermark` would end."""
        waiting, self.waiting = self.waiting, []
        for produced in waiting:
            if not produced.waiter.is_over:
                self.waiting.append(produced)
            elif produced.waiter.error is None:
                leader = produced.leader.leader
                if leader is None or len(leader.maximal_isr) >= MIN_ISR:
                    self.acknowledged[produced.offset] = produced.value

    def what_is_committed_is_in_every_log_in_sync(self) -> None:
        in_sync = [self.nodes[broker_id] for broker_id in self.state.isr]
        for node in self.nodes.values():
            high_watermark = node.log.high_watermark
            assert node.log.log_start_offset <= high_watermark <= node.log.log_end_offset
            assert node.log.log_start_offset <= self.deleted_below
            for other in in_sync:
                assert high_watermark <= other.log.log_end_offset, f"{node.id} commits more than {other.id} has"
                start = max(node.log.log_start_offset, other.log.log_start_offset)
                for offset in range(start, high_watermark):
                    assert node.records.get(offset) == other.records.get(offset), f"{offset} differs"

    def logs_and_epochs_match(self) -> None:
        for one in self.nodes.values():
            for offset, record in one.records.items():
                assert one.log.epoch_for_offset(offset) == record.epoch
            for other in self.nodes.values():
                for offset in one.records.keys() & other.records.keys():
                    a, b = one.records[offset], other.records[offset]
                    assert a == b or a.epoch != b.epoch

    def leaders_never_go_back(self) -> None:
        for node in self.nodes.values():
            leader = node.partition.leader
            if leader is None or not node.is_up:
                continue
            key = (node.id, leader.leader_epoch)
            end, high_watermark, in_sync = self.before.get(key, (0, 0, MIN_ISR))
            assert node.log.latest_epoch == leader.leader_epoch
            assert node.log.log_end_offset >= end
            assert leader.high_watermark == node.log.high_watermark
            assert leader.high_watermark >= high_watermark
            has_risen = leader.high_watermark > high_watermark and key in self.before
            assert not has_risen or max(in_sync, len(leader.isr)) >= MIN_ISR, "committed by too few"
            self.before[key] = node.log.log_end_offset, leader.high_watermark, len(leader.isr)
            for other in self.nodes.values():
                assert not other.is_up or node.partition.low_watermark <= other.log.log_start_offset


ACTIONS: dict[Callable[[Replication], None], int] = {
    Replication.an_epoch: 6,
    Replication.one_is_away: 5,
    Replication.one_catches_up: 8,
    Replication.settle_isr_changes: 2,
    Replication.decide_an_isr_change: 3,
    Replication.deliver_a_response: 4,
    Replication.produce: 6,
    Replication.copy: 6,
    Replication.send_a_fetch: 4,
    Replication.deliver_a_fetch: 4,
    Replication.deliver_records: 4,
    Replication.deliver_some_orders: 5,
    Replication.move_leadership: 3,
    Replication.kill: 2,
    Replication.restart_the_dead: 3,
    Replication.delete_records: 1,
    Replication.time_passes: 3,
    Replication.write_checkpoint: 2,
}
"""The actions and their weights."""


def test_a_proposed_isr_counts_until_the_controllers_next_order() -> None:
    """The controller agreed, the response was lost, a retry was refused for its epoch: the new member may lead next."""
    scenario = Replication(seed=0)
    first, controller_asked = scenario.nodes[1], scenario.world.asked
    for _ in range(4):  # without 3
        scenario._write_and_copy([2, 2])
        scenario._pass(600)
    scenario.settle_isr_changes()
    assert scenario.state.isr == {1, 2}
    scenario.replicate([3, 3])
    scenario.decide_an_isr_change()
    scenario._deliver_response(is_lost=True)
    assert scenario.state.isr == {1, 2, 3}
    scenario._elect(2, scenario.state.isr)  # no broker has got the order yet
    assert len(controller_asked) == 1
    scenario.decide_an_isr_change()
    scenario._deliver_response(is_lost=False)
    scenario._pass(1500)
    scenario._produce(first, 1)
    scenario.replicate([2, 2])
    scenario.check()
    assert first.log.high_watermark == first.log.log_end_offset - 1
    scenario.become_whole()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_history_of_replication(seed: int) -> None:
    Replication(seed).play(STEPS)
