"""A consumer group under any order of heartbeats, lost responses, leaves, pauses, metadata, failed appends and moves.

Invariants: no partition is owned by two members at one time, neither in the coordinator (checked by the harness) nor
among the members that it has; what a member reads is the coordinator's for it; epochs never fall; the log replays to
the live state (also the harness). In the end, with all members alive, the group settles, and each partition of each
topic that they want has one owner.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kpybroker.core.consumer_group import target
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.target import ComputeTarget
from kpybroker.core.consumer_group.values import (
    ConsumerGroupState,
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    ResolvePatterns,
)
from kpybroker.core.modern_group import leaving
from kpybroker.core.modern_group.members import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from kpybroker.wire.errors import ErrorCode
from tests.core.consumer_group.clients import GROUP, Client
from tests.core.consumer_group.harness import ConsumerHarness
from tests.support.examples import examples

WHO = st.integers(0, 4)
TOPICS = st.sampled_from(["t=4 u=2", "t=4", "t=5 u=2", "t=1 u=3 tt=2", "u=2"])
SUBSCRIPTIONS = st.sampled_from(["t", "u", "tu", ""]).map(frozenset)
PATTERNS = st.sampled_from(["t.*", "u", ".*"])
ROUNDS_MAX = 12


class ConsumerGroups(RuleBasedStateMachine):
    """Five clients of one group; two of them are static."""

    @initialize(
        slices=st.sampled_from([0, 0, 2]),
        interval=st.sampled_from([0, 1000]),
        fails_every=st.sampled_from([0, 0, 3, 7]),
        at_once=st.sampled_from([1, 1_000]),
    )
    def begin(self, slices: int, interval: int, fails_every: int, at_once: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(target, "TARGETS_AT_ONCE", at_once)
        self.patch.setattr(leaving, "FENCED_AT_ONCE", at_once)
        self.harness = ConsumerHarness()
        self.harness.do_group_config(f"assignment_interval_ms={interval}")
        self.harness.do_assignor("contiguous", str(slices))
        self.harness.fails_every = fails_every
        self.clients = [Client(f"m{who}", f"i{who}" if who > 2 else None) for who in range(5)]
        self.tickets = 0
        self.epochs: dict[str, int] = {}
        self.group_epochs = (0, 0)

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.harness.machine.groups.get(GROUP)
        return None if group is None else group.consumer

    def _ask(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatResult:
        self.tickets += 1
        ticket = f"t{self.tickets}"
        self.harness.ask(ticket, request)
        self.harness.check()
        result = self.harness.replies[ticket]
        assert isinstance(result, ConsumerHeartbeatResult)
        return result

    # --- what clients do

    @rule(who=WHO, says_owned=st.booleans(), is_lost=st.sampled_from([False, False, False, True]))
    def heartbeat(self, who: int, says_owned: bool, is_lost: bool) -> None:
        client = self.clients[who]
        result = self._ask(client.heartbeat(says_owned=says_owned))
        client.receive(None if is_lost else result)

    @rule(who=WHO)
    def give_up(self, who: int) -> None:
        self.clients[who].give_up()

    @rule(who=WHO, topic_names=SUBSCRIPTIONS, pattern=st.none() | PATTERNS)
    def subscribe(self, who: int, topic_names: frozenset[str], pattern: str | None) -> None:
        client = self.clients[who]
        client.topic_names, client.pattern, client.says_all = topic_names, pattern, True

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        """For good; the client gave up what it had before, and does not wait for the response."""
        client = self.clients[who]
        client.begin_again()
        self._ask(ConsumerHeartbeat(GROUP, client.member_id, LEAVE_GROUP_EPOCH, instance_id=client.instance_id))

    @rule(who=st.integers(3, 4), is_same=st.booleans())
    def restart(self, who: int, is_same: bool) -> None:
        """A static member goes for a while, and comes back, perhaps with another member id."""
        client = self.clients[who]
        away = ConsumerHeartbeat(GROUP, client.member_id, LEAVE_GROUP_STATIC_EPOCH, instance_id=client.instance_id)
        client.begin_again(None if is_same else f"m{who}-{self.tickets}")
        if self._ask(away).error is ErrorCode.NONE:
            self.epochs.pop(away.member_id, None)

    @rule(who=WHO)
    def crash(self, who: int) -> None:
        """A client dies without a word; the next one has another id. A static one must wait for the session's end."""
        client = self.clients[who]
        if client.instance_id is None:
            client.begin_again(f"m{who}-{self.tickets}")
            self.tickets += 1

    # --- what happens around them

    @rule(milliseconds=st.sampled_from([500, 1_000, 12_000, 46_000, 61_000]))
    def wait(self, milliseconds: int) -> None:
        self.harness.advance(milliseconds)
        self.harness.check()

    @rule(topics=TOPICS)
    def change_topics(self, topics: str) -> None:
        self.harness.do_topics(*topics.split())

    @rule()
    def finish_what_runs(self) -> None:
        if self.harness.pending:
            effect = self.harness.pending[0]
            if isinstance(effect, ResolvePatterns):
                self.harness.do_resolve()
            elif isinstance(effect, ComputeTarget):
                self.harness.do_computed()
            self.harness.check()

    @rule()
    def move(self) -> None:
        self.harness.do_reload()
        self.harness.check()

    # --- what must hold

    @invariant()
    def members_read_only_what_is_theirs(self) -> None:
        group = self.group
        if group is None:
            return
        for client in self.clients:
            member = group.members.get(client.member_id)
            if member is None or client.epoch == 0:
                continue  # gone, as it will hear; or it has no response yet and reads nothing
            for topic_id, partitions in client.owned.items():
                for partition in partitions:
                    assert member.current.epoch_of(topic_id, partition) is not None, (client, member)

    @invariant()
    def epochs_never_fall(self) -> None:
        group = self.group
        if group is None or group.is_empty:
            self.epochs.clear()
            self.group_epochs = (0, 0) if group is None else (group.epoch, group.target_epoch.epoch)
            return
        assert group.epoch >= self.group_epochs[0]
        assert group.target_epoch.epoch >= self.group_epochs[1]
        assert group.epoch >= group.target_epoch.epoch
        self.group_epochs = (group.epoch, group.target_epoch.epoch)
        for member_id, member in group.members.items():
            epoch = member.current.member_epoch
            if epoch != LEAVE_GROUP_STATIC_EPOCH:
                assert epoch >= self.epochs.get(member_id, 0)
                assert epoch <= group.target_epoch.epoch
                self.epochs[member_id] = epoch
        for member_id in self.epochs.keys() - group.members.keys():
            del self.epochs[member_id]

    def teardown(self) -> None:
        """All members are alive again: what they want is divided among them."""
        if not hasattr(self, "harness"):
            return
        self.harness.fails_every, self.harness.fail_next = 0, None
        self.harness.advance(100_000)
        self.harness.check()
        assert self.group is None or self.group.is_empty
        for client in self.clients:
            client.begin_again()
        for _ in range(ROUNDS_MAX):
            self._round()
        group = self.group
        assert group is not None
        assert group.state is ConsumerGroupState.STABLE
        self._check_division(group)
        self.patch.undo()

    def _round(self) -> None:
        while self.harness.pending:
            self.finish_what_runs()
        for client in self.clients:
            client.give_up()
            client.receive(self._ask(client.heartbeat(says_owned=True)))
        self.members_read_only_what_is_theirs()
        self.harness.advance(10_001)

    def _check_division(self, group: ConsumerGroup) -> None:
        wanted = {
            (topic.topic_id, partition)
            for topic in self.harness.topics.names.values()
            if group.is_subscribed_to(topic.name)
            for partition in range(topic.partition_count)
        }
        has = [
            (topic_id, partition)
            for client in self.clients
            for topic_id, partitions in client.owned.items()
            for partition in partitions
        ]
        assert len(has) == len(set(has)), "a partition is read by two members"
        assert set(has) == wanted


TestConsumerGroups = ConsumerGroups.TestCase
TestConsumerGroups.settings = settings(
    max_examples=examples(60), stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
