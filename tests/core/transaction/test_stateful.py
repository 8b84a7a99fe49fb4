"""The transaction state machine against a simple model, in any order of clients, failures, slow replicas and moves.

Producers of both versions use the id, and the level of `transaction.version` changes. Invariants: every ticket gets one
reply at most (checked by the harness), and always in the end; the log replays to the live durable state (also the
harness); an epoch is given out once, by InitProducerId or by an end of version 2, whose markers have a later epoch than
what they end; a decision that was acknowledged, or that a marker was ordered for, is never reversed; markers are
ordered for exactly the partitions that still need one, one order at a time; nothing is left undecided after failures
end.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.transaction.state import Transaction
from kpybroker.core.transaction.values import (
    AddPartitions,
    EndResult,
    EndTransaction,
    InitProducerId,
    InitResult,
    ProducerIdAndEpoch,
    TransactionState,
)
from kpybroker.wire.errors import ErrorCode
from tests.core.transaction.harness import Harness
from tests.support.examples import examples

X = "x"
WHO = st.integers(0, 2)
S = TransactionState
PARTITIONS = st.frozensets(st.sampled_from([("t", 0), ("t", 1), ("u", 0)]), max_size=3)
APPEND_ERRORS = st.sampled_from(["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE"])
VERSIONS = st.sampled_from([0, 2])
MARKER_ERRORS = st.sampled_from([ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])


class Transactions(RuleBasedStateMachine):
    """One transactional id. `who` counts back from the newest producer."""

    @initialize(first=st.sampled_from([None, "7/32764", "7/32766"]))
    def begin(self, first: str | None) -> None:
        self.harness = Harness()
        self.tickets = 0
        self.seen: set[str] = set()
        self.requests: dict[str, object] = {}
        self.producers: list[ProducerIdAndEpoch] = [ProducerIdAndEpoch(7, 0)]
        if first is not None:
            self.harness.do_given(X, "CompleteCommit", first)

    def _ask(self, request: object) -> str:
        self.tickets += 1
        ticket = f"t{self.tickets}"
        self.requests[ticket] = request
        self.harness.ask(ticket, request)
        self.harness.check()
        return ticket

    def _who(self, who: int) -> ProducerIdAndEpoch:
        return self.producers[-1 - min(who, len(self.producers) - 1)]

    @rule(level=st.integers(0, 2))
    def the_level_changes(self, level: int) -> None:
        self.harness.do_level(str(level))

    @rule(
        wish=st.sampled_from(["add", "commit", "abort"]),
        partitions=PARTITIONS,
        claims=st.booleans(),
        version=VERSIONS,
    )
    def the_newest_producer_goes_on(
        self, wish: str, partitions: frozenset[PartitionKey], claims: bool, version: int
    ) -> None:
        """What a client does: init when fenced, add when nothing is open, then any request."""
        transaction, newest = self.harness.machine.transactions.get(X), self.producers[-1]
        if transaction is None or _producer(transaction) != newest:
            self._ask(InitProducerId(X, 1_000, newest if claims else None))
        elif wish == "add" or transaction.current.state is not S.ONGOING:
            self._ask(AddPartitions(X, *newest, partitions, version=version))
        else:
            self._ask(EndTransaction(X, *newest, wish == "commit", version))

    @rule(claims=st.booleans(), who=WHO)
    def somebody_begins(self, claims: bool, who: int) -> None:
        self._ask(InitProducerId(X, 60_000, self._who(who) if claims else None))

    @rule(who=WHO, partitions=PARTITIONS, version=VERSIONS)
    def somebody_adds(self, who: int, partitions: frozenset[PartitionKey], version: int) -> None:
        self._ask(AddPartitions(X, *self._who(who), partitions, version=version))

    @rule(who=WHO, committed=st.booleans(), version=VERSIONS)
    def somebody_ends(self, who: int, committed: bool, version: int) -> None:
        self._ask(EndTransaction(X, *self._who(who), committed, version))

    @rule(errors=st.lists(MARKER_ERRORS, min_size=3, max_size=3))
    def markers(self, errors: list[ErrorCode]) -> None:
        if self.harness.orders:
            order = self.harness.orders.popleft()
            self.harness.respond_to_order(order, dict(zip(order.partitions, errors, strict=False)))
            self.harness.check()

    @rule(milliseconds=st.sampled_from([1, 100, 2_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.harness.advance(milliseconds)
        self.harness.do_timeouts()
        self.harness.check()

    @rule(error=APPEND_ERRORS)
    def next_append_fails(self, error: str) -> None:
        self.harness.do_fail(error)

    @rule()
    def replicas_are_slow(self) -> None:
        self.harness.do_hold()

    @rule(waited=st.booleans())
    def replicas_catch_up(self, waited: bool) -> None:
        if waited:
            self.harness.do_time_out()
        self.harness.do_release()
        self.harness.check()

    @rule()
    def the_coordinator_moves(self) -> None:
        self.harness.do_reload()
        self.harness.check()

    # --- invariants

    @invariant()
    def responses_are_true(self) -> None:
        for ticket, result in self.harness.replies.items():
            if ticket in self.seen:
                continue
            self.seen.add(ticket)
            request = self.requests[ticket]
            if isinstance(result, InitResult) and result.error is ErrorCode.NONE:
                self._given(ProducerIdAndEpoch(result.producer_id, result.producer_epoch), ticket)
            elif isinstance(request, AddPartitions) and result is ErrorCode.NONE:
                now = self.harness.machine.transactions[X].current
                assert now.state is S.ONGOING
                assert request.partitions <= now.partitions
            elif (
                isinstance(result, EndResult) and isinstance(request, EndTransaction) and result.error is ErrorCode.NONE
            ):
                ends = [state for state in self._logged() if state not in ("Empty", "Ongoing")]
                assert ends[-1] in (
                    ("PrepareCommit", "CompleteCommit") if request.committed else ("PrepareAbort", "CompleteAbort")
                )
                assert (result.producer_id >= 0) is (request.version == 2)
                if request.version == 2:
                    self._given(ProducerIdAndEpoch(result.producer_id, result.producer_epoch), ticket)

    def _logged(self) -> list[str]:
        """The states of the log, in order."""
        return [line.split()[2] for line in self.harness.output if line.startswith(f"log {X} ")]

    def _given(self, producer: ProducerIdAndEpoch, ticket: str) -> None:
        request = self.requests[ticket]
        assert isinstance(request, InitProducerId | EndTransaction)
        if producer in self.producers:
            # Only to a producer that names the epoch before: a retry.
            assert isinstance(request, EndTransaction) or request.expected is not None
        else:
            newest = self.producers[-1]
            assert producer.producer_id != newest.producer_id or producer.epoch > newest.epoch
            self.producers.append(producer)

    @invariant()
    def one_order_at_a_time_and_for_what_was_decided(self) -> None:
        current = self.harness.machine.transactions.get(X)
        for order in self.harness.orders:
            assert current is not None
            assert current.current.state is (S.PREPARE_COMMIT if order.committed else S.PREPARE_ABORT)
            assert set(order.partitions) == current.current.partitions
            if order.version == 2:
                written = self._last_open()
                assert written.producer_id == order.producer_id
                assert written.epoch < order.producer_epoch
        assert len(self.harness.orders) <= 1

    def _last_open(self) -> ProducerIdAndEpoch:
        """What the records of the last transaction have."""
        place = next(line.split()[3] for line in reversed(self.harness.output) if line.startswith(f"log {X} Ongoing "))
        producer_id, epoch = place.split("/")
        return ProducerIdAndEpoch(int(producer_id), int(epoch))

    @invariant()
    def the_log_never_turns_a_decision_around(self) -> None:
        states = self._logged()
        for before, after in pairwise(states):
            if before == "PrepareCommit":
                assert after == "CompleteCommit"
            if before == "PrepareAbort":
                assert after == "CompleteAbort"

    def teardown(self) -> None:
        """After failures end: every decision is carried out, and every request has its response."""
        if not hasattr(self, "harness"):
            return
        self.harness.do_hold()
        self.harness.do_release()
        for _ in range(20):
            self.harness.advance(100)
            if self.harness.orders:
                self.harness.respond_to_order(self.harness.orders.popleft(), {})
        assert self.harness.asked == set(self.harness.replies)
        transaction = self.harness.machine.transactions.get(X)
        if transaction is not None:
            assert transaction.pending is None
            assert transaction.current.state not in (S.PREPARE_COMMIT, S.PREPARE_ABORT)
            assert transaction.stored is not None
            assert transaction.current.partitions == transaction.stored.partitions
        self.harness.check()


def _producer(transaction: Transaction) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(transaction.current.producer_id, transaction.current.producer_epoch)


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(
    max_examples=examples(100), stateful_step_count=80, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
