"""A share group under any order of heartbeats, lost responses, leaves, pauses, metadata, failed appends, late results
of the share coordinator, and moves.

Invariants: the log replays to the live state, and the budget is what is there (both by the harness); members have only
partitions with a state; epochs never fall. In the end, with all members alive, the group settles: each partition of
each topic that they want has at least one of them, and as many as any other of the topic.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kpybroker.core.share_group.state import ShareGroup
from kpybroker.core.share_group.values import ShareHeartbeat, ShareHeartbeatResult
from kpybroker.wire.errors import ErrorCode
from tests.core.share_group.harness import ShareHarness
from tests.support.examples import examples

WHO = st.integers(0, 3)
SUBSCRIPTIONS = st.sampled_from(["t", "u", "tu"]).map(frozenset)
TOPICS = st.sampled_from(["t=4 u=2", "t=4", "t=5 u=2", "t=1 u=3"])
ERRORS = st.sampled_from(["NONE", "NONE", "COORDINATOR_NOT_AVAILABLE"])
GONE = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
ROUNDS_MAX = 12


@dataclass
class Client:
    """A member as it knows itself."""

    member_id: str
    topic_names: frozenset[str] = frozenset("t")
    epoch: int = 0
    assigned: dict[bytes, frozenset[int]] = field(default_factory=dict)
    says_all: bool = True

    def heartbeat(self) -> ShareHeartbeat:
        names = self.topic_names if self.says_all else None
        return ShareHeartbeat("g", self.member_id, self.epoch, None, names, "c", "/h")

    def receive(self, result: ShareHeartbeatResult | None) -> None:
        """Its response; None: it was lost."""
        if result is None or result.error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.says_all = True
        elif result.error in GONE:
            self.epoch, self.assigned, self.says_all = 0, {}, True
        else:
            assert result.error is ErrorCode.NONE, result
            assert result.member_epoch >= self.epoch
            self.epoch, self.says_all = result.member_epoch, False
            if result.assignment is not None:
                self.assigned = dict(result.assignment)


class AnyOrder(RuleBasedStateMachine):
    """Four clients of one group."""

    @initialize(interval=st.sampled_from([0, 1000]), fails_every=st.sampled_from([0, 0, 3, 7]))
    def begin(self, interval: int, fails_every: int) -> None:
        self.harness = ShareHarness()
        self.harness.do_share_config(f"assignment_interval_ms={interval}")
        self.harness.fails_every = fails_every
        self.clients = [Client(f"m{who}") for who in range(4)]
        self.tickets = 0
        self.group_epoch = 0

    @property
    def group(self) -> ShareGroup | None:
        return self.harness.machine.shares.groups.get("g")

    def beat(self, client: Client, *, is_lost: bool = False) -> None:
        self.tickets += 1
        ticket = f"h{self.tickets}"
        self.harness.ask(ticket, client.heartbeat())
        result = self.harness.replies[ticket]
        assert isinstance(result, ShareHeartbeatResult)
        client.receive(None if is_lost else result)

    @rule(who=WHO, is_lost=st.booleans())
    def heartbeat(self, who: int, is_lost: bool) -> None:
        self.beat(self.clients[who], is_lost=is_lost)

    @rule(who=WHO, topic_names=SUBSCRIPTIONS)
    def subscribe(self, who: int, topic_names: frozenset[str]) -> None:
        client = self.clients[who]
        client.topic_names, client.says_all = topic_names, True
        self.beat(client)

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        client = self.clients[who]
        client.epoch = -1
        self.tickets += 1
        self.harness.ask(f"l{self.tickets}", client.heartbeat())
        client.epoch, client.assigned, client.says_all = 0, {}, True

    @rule(error=ERRORS)
    def result(self, error: str) -> None:
        if self.harness.orders:
            self.harness.do_made(error)

    @rule(milliseconds=st.sampled_from([1, 1_000, 31_000, 46_000]))
    def pause(self, milliseconds: int) -> None:
        self.harness.advance(milliseconds)

    @rule(topics=TOPICS)
    def change_topics(self, topics: str) -> None:
        before = self.harness.topics.names
        self.harness.do_topics(*topics.split())
        for name in before.keys() - self.harness.topics.names.keys():
            self.harness.do_topic_deleted(name)

    @rule()
    def move(self) -> None:
        self.harness.do_reload()
        self.harness.orders.clear()

    @rule(what=st.sampled_from(["delete", "forget-offsets", "alter"]))
    def administer(self, what: str) -> None:
        arguments = {"delete": [], "forget-offsets": ["t"], "alter": ["t-0=5", "u-1=7"]}[what]
        self.tickets += 1
        self.harness.ask(f"x{self.tickets}", self.harness.request(what, "g", arguments))

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "harness"):
            self.harness.check()
            if self.group is None:
                self.group_epoch = 0
            else:
                assert self.group.epoch >= self.group_epoch
                self.group_epoch = self.group.epoch

    def teardown(self) -> None:
        if hasattr(self, "harness"):
            self.harness.fails_every = 0
            self.harness.fail_next = None
            for _ in range(ROUNDS_MAX):
                self.harness.advance(31_000)
                for client in self.clients:
                    self.beat(client)
                while self.harness.orders:
                    self.harness.do_made()
            self.harness.check()
            self.settled()

    def settled(self) -> None:
        group = self.group
        assert group is not None
        assert group.target_epoch.epoch == group.epoch
        members = Counter(
            (topic_id, index)
            for client in self.clients
            for topic_id, indexes in client.assigned.items()
            for index in indexes
        )
        for client in self.clients:
            assert client.assigned == group.members[client.member_id].current.assigned
        for name, topic in self.harness.topics.names.items():
            counts = {members[topic.topic_id, index] for index in range(topic.partition_count)}
            if any(name in client.topic_names for client in self.clients):
                assert 0 not in counts
            else:
                assert counts == {0}


AnyOrder.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnyOrder = AnyOrder.TestCase
