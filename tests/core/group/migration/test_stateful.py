"""A group whose members change their protocol in any order, with lost responses, failed appends, pauses and moves.

Invariants: no partition is read by two members at one time, whatever the protocol of each; the coordinator has no two
owners of one, and its log replays to its live state (the harness). In the end, with all members alive and a policy that
lets them in, the group settles, and each partition has one reader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ConsumerHeartbeatResult, MigrationPolicy
from kpybroker.core.group.values import Join, Leave, LeavingMember
from kpybroker.core.modern_group.members import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from tests.core.consumer_group.clients import GROUP, Client
from tests.core.consumer_group.harness import ConsumerHarness
from tests.core.group.migration.clients import ClassicClient

WHO = st.integers(0, 3)
ROUNDS_MAX = 30
POLICIES = [*[MigrationPolicy.BIDIRECTIONAL] * 4, MigrationPolicy.UPGRADE, MigrationPolicy.DOWNGRADE]
BOTH = frozenset("tu")


class MixedGroups(RuleBasedStateMachine):
    """Four clients of one group; the last one is static. Each begins with the classic protocol."""

    @initialize(
        policy=st.sampled_from(POLICIES),
        interval=st.sampled_from([0, 0, 1000]),
        fails_every=st.sampled_from([0, 0, 3, 7]),
    )
    def begin(self, policy: MigrationPolicy, interval: int, fails_every: int) -> None:
        self.harness = ConsumerHarness()
        self.harness.do_config("group_initial_rebalance_delay_ms=0")
        self.harness.do_limits(f"migration_policy={policy.value}")
        self.harness.do_group_config(f"assignment_interval_ms={interval}")
        self.harness.fails_every = fails_every
        self.policy = policy
        self.names = 0
        self.clients: list[Client | ClassicClient] = [self._classic(who) for who in range(4)]

    def _name(self) -> str:
        self.names += 1
        return str(self.names)

    def _classic(self, who: int) -> ClassicClient:
        instance_id = "i" if who == 3 else None
        return ClassicClient(f"c{who}", self.harness.topics, instance_id, is_eager=who % 2 == 0)

    def _new(self, who: int) -> Client:
        return Client(f"m{who}-{self._name()}", "i" if who == 3 else None, BOTH)

    def _ask(self, request: object) -> str:
        ticket = f"t{self._name()}"
        self.harness.ask(ticket, request)
        return ticket

    # --- what clients do

    @rule(turns=st.lists(WHO, min_size=1, max_size=16))
    def act_in_turn(self, turns: list[int]) -> None:
        for who in turns:
            self._act(who)
            self.no_partition_is_read_by_two_members()

    @rule(rounds=st.integers(1, 6))
    def act_all(self, rounds: int) -> None:
        self.act_in_turn(list(range(4)) * rounds)

    @rule()
    def settle(self) -> None:
        """A minute without events: member ids that were given out and not used are forgotten."""
        for _ in range(20):
            self.act_all(1)
            self.wait(3_000)

    @rule(who=WHO)
    def lose_a_response(self, who: int) -> None:
        self._act(who, is_lost=True)

    def _act(self, who: int, *, is_lost: bool = False) -> None:
        """The next request of a client, unless it waits for the response to the last one."""
        client = self.clients[who]
        if isinstance(client, Client):
            client.give_up()
            result = self.harness.replies[self._ask(client.heartbeat(says_owned=True))]
            assert isinstance(result, ConsumerHeartbeatResult)
            client.receive(None if is_lost else result)
            return
        if client.ticket is None:
            request = client.request(f"{client.name}-{self._name()}")
            if isinstance(request, Join) and client.owned and client.member_id not in self._members():
                client.is_expelled = True
            client.ticket = self._ask(request)
        self._look(client, is_lost=is_lost)

    def _look(self, client: ClassicClient, *, is_lost: bool = False) -> None:
        self.harness.advance(0)
        if client.ticket in self.harness.replies:
            result = self.harness.replies[client.ticket]
            if is_lost:
                client.ticket, client.next = None, Join
            else:
                client.receive(result)

    @rule(who=WHO, says_so=st.booleans(), is_new=st.booleans())
    def restart(self, who: int, says_so: bool, is_new: bool) -> None:
        """A client stops, with or without a word, and starts again with one of the two protocols."""
        client = self.clients[who]
        if says_so and isinstance(client, Client):
            epoch = LEAVE_GROUP_EPOCH if client.instance_id is None else LEAVE_GROUP_STATIC_EPOCH
            self._ask(ConsumerHeartbeat(GROUP, client.member_id, epoch, client.instance_id))
        elif says_so and isinstance(client, ClassicClient) and client.member_id and client.instance_id is None:
            self._ask(Leave(GROUP, (LeavingMember(client.member_id),)))
        self.clients[who] = self._new(who) if is_new else self._classic(who)

    @rule(is_new=st.booleans(), says_so=st.booleans(), rounds=st.integers(0, 3))
    def roll(self, is_new: bool, says_so: bool, rounds: int) -> None:
        """An application restarts its clients one after the other, all with the same protocol."""
        for who in range(4):
            self.restart(who, says_so, is_new)
            self.act_in_turn([who, *list(range(4)) * rounds])

    @rule(who=st.integers(0, 2), turns=st.lists(WHO, max_size=6))
    def try_the_new_protocol(self, who: int, turns: list[int]) -> None:
        """One client changes to it, and back soon after."""
        self.restart(who, says_so=True, is_new=True)
        self.act_in_turn([who, *turns])
        self.restart(who, says_so=True, is_new=False)
        self.act_in_turn(turns)

    @rule(who=WHO)
    def remove(self, who: int) -> None:
        """An administrator removes a member; it does not know."""
        client = self.clients[who]
        if client.member_id:
            self._ask(Leave(GROUP, (LeavingMember(client.member_id),)))

    # --- what happens around them

    @rule(milliseconds=st.sampled_from([500, 1_000, 1_000, 12_000, 46_000]))
    def wait(self, milliseconds: int) -> None:
        self.harness.advance(milliseconds)

    @rule()
    def move(self) -> None:
        self.harness.do_reload()

    # --- what must hold

    @invariant()
    def the_log_replays(self) -> None:
        self.harness.check()

    def _members(self) -> Collection[str]:
        group = self.harness.machine.groups.get(GROUP)
        if group is None:
            return ()
        return group.members.keys() if group.consumer is None else group.consumer.members.keys()

    @invariant()
    def no_partition_is_read_by_two_members(self) -> None:
        """But by one that is gone, as it will hear."""
        members = self._members()
        readers = [
            (topic_id, partition)
            for client in self.clients
            if client.member_id in members and not (isinstance(client, ClassicClient) and client.is_expelled)
            for topic_id, partitions in client.owned.items()
            for partition in partitions
        ]
        assert len(readers) == len(set(readers)), [(one, one.owned) for one in self.clients]

    def teardown(self) -> None:
        """All members are alive again, those of the new protocol where they are let in."""
        if not hasattr(self, "harness"):
            return
        self.harness.fails_every, self.harness.fail_next = 0, None
        self.harness.advance(200_000)
        self.harness.check()
        if not self.policy.allows_upgrade:
            self.clients = [self._new(who) for who in range(4)]
        self.clients = [
            self._new(who) if isinstance(client, Client) else self._classic(who)
            for who, client in enumerate(self.clients)
        ]
        for _ in range(ROUNDS_MAX):
            for who, client in enumerate(self.clients):
                if isinstance(client, ClassicClient) and client.ticket is not None:
                    self._look(client)
                self._act(who)
            self.no_partition_is_read_by_two_members()
            self.harness.advance(3_000)
        has = [
            (topic_id, partition)
            for client in self.clients
            for topic_id, partitions in client.owned.items()
            for partition in partitions
        ]
        assert len(has) == len(set(has)) == 6, self.clients


def walk(seed: int) -> None:
    """Random steps, in the proportions of applications that restart now and then."""
    random = Random(seed)
    group = MixedGroups()
    group.begin(random.choice(POLICIES), random.choice([0, 0, 1000]), random.choice([0, 0, 3, 7]))
    group.act_all(3)
    steps: list[tuple[int, Callable[[], None]]] = [
        (30, lambda: group.act_in_turn(random.choices(range(4), k=random.randrange(1, 16)))),
        (15, lambda: group.act_all(random.randrange(1, 6))),
        (10, group.settle),
        (5, lambda: group.lose_a_response(random.randrange(4))),
        (12, lambda: group.roll(random.random() < 0.3, random.random() < 0.7, random.randrange(4))),
        (15, lambda: group.try_the_new_protocol(random.randrange(3), random.choices(range(4), k=random.randrange(7)))),
        (5, lambda: group.restart(random.randrange(4), random.random() < 0.7, random.random() < 0.5)),
        (3, lambda: group.remove(random.randrange(4))),
        (20, lambda: group.wait(random.choice([500, 1_000, 1_000, 12_000, 46_000]))),
        (5, group.move),
    ]
    weights, rules = zip(*steps, strict=True)
    for rule_of in random.choices(rules, weights, k=25):
        rule_of()
        group.the_log_replays()
        group.no_partition_is_read_by_two_members()
    group.teardown()


@pytest.mark.parametrize("seed", range(30))
def test_walks_through_both_protocols(seed: int) -> None:
    walk(seed)


TestMixedGroups = MixedGroups.TestCase
TestMixedGroups.settings = settings(
    max_examples=25, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
