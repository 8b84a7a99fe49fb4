"""The group state machine: every group of one partition of `__consumer_offsets`.

Rules
- `handle(request, ticket, now)` takes a request, `expire(now)` runs timers, `settle(done, error, now)` takes the result
  of a write or read. Each returns an `Outcome` (see `core/machine.py` for what the shell does with it).
- Only `replay` and `replay_marker` change durable state: `Group.stored`, `Group.offsets`, and which groups exist by
  them. A live coordinator and one that has just read the partition use the same two methods, so they agree.
- Live state (members, sessions, waiting requests) starts in `activate`, after the whole partition has been replayed,
  and ends in `unload`.
- Every ticket gets exactly one reply, at the latest by `unload`.

Consumer groups (KIP-848) and streams groups (KIP-1071) are in the same table, share groups (KIP-932) have their own,
`core.share_group.groups`. `kinds` has what is of one kind only: `kinds.classic` who handles a request of that protocol,
`kinds.modern` the others.

Not here: which partition a group belongs to, whether this broker leads it, authorization, API versions, and the check
of a group id's form. The shell (`kpybroker.broker.coordinators`) and the handlers do that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial

from kpybroker.core.assignors.values import Assignment
from kpybroker.core.budget import StateBudget
from kpybroker.core.consumer_group.leaving import tombstones as consumer_tombstones
from kpybroker.core.consumer_group.patterns import on_patterns_resolved
from kpybroker.core.consumer_group.target import Computation, on_target_computed
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, DescribeConsumerGroup, ResolvedPattern, Surroundings
from kpybroker.core.group.committing import (
    expire_offsets,
    remove_offsets,
)
from kpybroker.core.group.kinds.classic import (
    HANDLERS,
    RESULT_WITHOUT_GROUP,
    ClassicRequest,
    creates_group,
    expire_classic,
)
from kpybroker.core.group.kinds.consumers import affected, handle_classic
from kpybroker.core.group.kinds.modern import ModernGroups
from kpybroker.core.group.kinds.share_refusals import refused_by_share_group
from kpybroker.core.group.kinds.streams import STREAMS_REQUESTS, StreamsRequest, handle_other
from kpybroker.core.group.rebalance import (
    prepare_rebalance,
    respond_to_join,
    respond_to_sync,
    restart_session,
    store_error,
)
from kpybroker.core.group.records import GroupRecord, OffsetRecord, Record
from kpybroker.core.group.room import GROWING, Growing, charged_owner, needed_bytes, refusal
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupOutcome, GroupStep
from kpybroker.core.group.timers import Timers
from kpybroker.core.group.values import (
    DeleteGroup,
    GroupConfig,
    GroupOverview,
    GroupState,
    Join,
    JoinResult,
    SyncResult,
)
from kpybroker.core.machine import Now, Ticket
from kpybroker.core.modern_group.values import Topics
from kpybroker.core.share_group.groups import SHARE_REQUESTS, ShareRequest
from kpybroker.core.share_group.records import SHARE_RECORDS
from kpybroker.core.share_group.target import on_target_computed as on_share_target_computed
from kpybroker.core.share_group.values import (
    SHARE_GROUP_TYPE,
    DeleteStates,
    InitializeStates,
    ShareSurroundings,
    StateErrors,
)
from kpybroker.core.streams_group.leaving import tombstones as streams_tombstones
from kpybroker.core.streams_group.values import StreamsSurroundings
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget

Request = ClassicRequest | ConsumerHeartbeat | DescribeConsumerGroup | ShareRequest | StreamsRequest


class GroupMachine:
    """The groups of one `__consumer_offsets` partition, by group id in `groups`.

    Those that clients build are charged to `budget`; a request for which it has no room is refused.
    """

    __slots__ = (
        "_budget",
        "_config",
        "_counts",
        "_modern",
        "_timers",
        "groups",
        "open_producers",
        "shares",
    )

    def __init__(
        self,
        config: GroupConfig,
        budget: StateBudget | None = None,
        surroundings: Surroundings | None = None,
        share_settings: ShareSurroundings | None = None,
        streams_settings: StreamsSurroundings | None = None,
    ) -> None:
        self._config = config
        self._budget = StateBudget() if budget is None else budget
        surroundings = Surroundings() if surroundings is None else surroundings
        self._modern = ModernGroups(
            self._budget, surroundings, share_settings or ShareSurroundings(), streams_settings or StreamsSurroundings()
        )
        self.shares = self._modern.shares
        self._counts = surroundings.counts
        self._timers = Timers()
        self.groups: dict[str, Group] = {}
        # producer id -> groups that have offsets in its open transaction: a marker names only the producer
        self.open_producers: dict[int, set[str]] = {}

    # --- requests and time

    def handle(self, request: Request, ticket: Ticket, now: Now) -> GroupOutcome:
        """Handle one request; the reply to `ticket` is in this outcome or in a later one."""
        step = self._step(now)
        self._handle(step, request, ticket)
        return self._finish(step)

    def _handle(self, step: GroupStep, request: Request, ticket: Ticket) -> None:
        group = self.groups.get(request.group_id)
        if type(request) not in HANDLERS:  # first: a classic heartbeat pays for no isinstance
            if isinstance(request, SHARE_REQUESTS):
                self.shares.handle(step, request, ticket, is_other_kind=group is not None)
                return
            if isinstance(request, STREAMS_REQUESTS):
                is_share = request.group_id in self.shares.groups
                self._modern.streams.handle(step, group, request, ticket, is_share=is_share)
                return
        if isinstance(request, Join) and not self._is_session_timeout_allowed(request.session_timeout_ms):
            step.reply(ticket, JoinResult(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
            return
        if self.shares.groups and (share := self.shares.groups.get(request.group_id)) is not None:
            if isinstance(request, DeleteGroup):
                self.shares.delete(step, share, ticket)
            else:
                refused_by_share_group(step, request, ticket)
            return
        if isinstance(request, GROWING):
            if not self._has_room(group, request):
                step.reply(ticket, refusal(request))
                return
            if group is None and creates_group(request):
                group = self.groups[request.group_id] = Group(request.group_id, self._budget)
            if group is not None:
                group.belongs_to(request.owner)
        if group is not None and (streams := group.streams) is not None:
            if isinstance(request, Join) and streams.is_empty and not request.member_id:
                step.info(f"[GroupId {group.group_id}] Converted the empty streams group to a classic group.")
                step.write(streams_tombstones(streams), partial(self._join_converted, request, ticket))
            else:
                handle_other(step, group, request, ticket)
        elif isinstance(request, ConsumerHeartbeat):
            self._modern.consumers.heartbeat(step, group, request, ticket)
        elif isinstance(request, DescribeConsumerGroup):
            self._modern.consumers.describe(step, group, request, ticket)
        elif group is None:
            step.reply(ticket, RESULT_WITHOUT_GROUP[type(request)](request))
        elif group.consumer is None:
            HANDLERS[type(request)](step, group, request, ticket)
        elif isinstance(request, Join) and group.consumer.is_empty and not request.member_id:
            step.info(f"[GroupId {group.group_id}] Converted the empty consumer group to a classic group.")
            step.write(consumer_tombstones(group.consumer), partial(self._join_converted, request, ticket))
        else:
            handle_classic(step, group, request, ticket)

    def _join_converted(self, request: Join, ticket: Ticket, step: GroupStep, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self._handle(step, request, ticket)
        else:
            step.reply(ticket, JoinResult(store_error(error), request.member_id))

    @property
    def deadline(self) -> float | None:
        """The monotonic time before which `expire` has nothing to do."""
        classic, modern = self._timers.deadline, self._modern.deadline
        if modern is None:
            return classic
        return modern if classic is None else min(classic, modern)

    def expire(self, now: Now) -> GroupOutcome:
        """Run the timers that are due at `now`. Timers that this sets wait for the next call."""
        step = self._step(now)
        expire_classic(step, self._timers)
        self._modern.expire(step, self.groups)
        return self._finish(step)

    def settle(self, done: Callable[[GroupStep, ErrorCode], None], error: ErrorCode, now: Now) -> GroupOutcome:
        """Report the result of a write or read of an earlier outcome."""
        step = self._step(now)
        done(step, error)
        return self._finish(step)

    def cleanup(self, group_id: str, now: Now) -> GroupOutcome:
        """Remove one group's expired offsets, and the group if nothing is left of it."""
        step = self._step(now)
        if (group := self.groups.get(group_id)) is not None:
            expire_offsets(step, group)
        return self._finish(step)

    def forget_topic(
        self, group_id: str, topic: str, topic_id: bytes, now: Now, *, keeps_group: bool = False
    ) -> GroupOutcome:
        """The topic was deleted: remove the group's offsets in it, and the group if nothing is left of it, at once or,
        with `keeps_group`, in the next cleanup. Offsets in the topic that has its name by now, with this id, stay; all
        zeros if there is none.
        """
        step = self._step(now)
        if (group := self.groups.get(group_id)) is not None:
            partitions = [
                partition
                for partition, value in group.offsets.values()
                if partition[0] == topic and (value.topic_id == ZERO_UUID or value.topic_id != topic_id)
            ]
            keeps_group |= group.modern is not None
            remove_offsets(step, group, partitions, _ignore, keeps_group=keeps_group)
        self.shares.forget_topic(step, group_id, topic, topic_id)
        return self._finish(step)

    def overviews(self) -> Iterator[GroupOverview]:
        """One row of ListGroups for every group."""
        yield from (group.overview() for group in self.groups.values())
        for share in self.shares.groups.values():
            yield GroupOverview(share.group_id, SHARE_GROUP_TYPE, share.state.value, SHARE_GROUP_TYPE)

    # --- what consumer groups asked for

    def on_topics_changed(self, topics: Topics, changed: Iterable[str], *, has_new: bool) -> None:
        """There is new metadata, in which some topics were made, altered or deleted. `has_new`: some were made."""
        self._modern.on_topics_changed(self.groups, topics, changed, has_new=has_new)

    def on_patterns_resolved(
        self, group_id: str, resolved: Mapping[str, ResolvedPattern] | None, now: Now
    ) -> GroupOutcome:
        """The result of the effect `ResolvePatterns`; None if it failed."""
        step = self._step(now)
        for consumer in affected(self.groups, (group_id,)):
            on_patterns_resolved(step, consumer, resolved)
        return self._finish(step)

    def on_target_computed(
        self, group_id: str, computation: Computation, assignment: Assignment, now: Now
    ) -> GroupOutcome:
        """The result of the effect `ComputeTarget`."""
        step = self._step(now)
        for consumer in affected(self.groups, (group_id,)):
            on_target_computed(step, consumer, computation, assignment)
        if (share := self.shares.groups.get(group_id)) is not None:
            on_share_target_computed(step, share, computation, assignment)
        return self._finish(step)

    def on_states_done(self, effect: InitializeStates | DeleteStates, errors: StateErrors, now: Now) -> GroupOutcome:
        """The result of one of these effects."""
        step = self._step(now)
        effect.done(step, errors)
        return self._finish(step)

    # --- durable state

    def replay(self, record: Record, offset: int, producer_id: int = -1) -> None:
        """Apply the record at `offset` of the log, in a transaction of `producer_id` unless that is -1."""
        if isinstance(record, SHARE_RECORDS):
            self.shares.replay(record, offset)
            return
        group = self.groups.get(record.group_id)
        if group is None:
            group = self.groups[record.group_id] = Group(record.group_id, self._budget)
        group.written_up_to = offset + 1
        if isinstance(record, OffsetRecord):
            group.offsets.replay_commit(record.partition, record.value, offset, producer_id)
            if producer_id >= 0 and record.value is not None:
                self.open_producers.setdefault(producer_id, set()).add(record.group_id)
        elif isinstance(record, GroupRecord):
            group.end_modern()
            group.set_stored(record.value)
            self._modern.consumers.begin_successor(group, record)
        else:
            self._modern.replay(group, record, offset)
        group.charge()
        if record.value is None:
            self._drop_if_nothing_is_left(group)

    def replay_marker(self, producer_id: int, committed: bool) -> None:
        """A transaction has ended: its commit or abort marker is in the log."""
        for group_id in sorted(self.open_producers.pop(producer_id, ())):
            if (group := self.groups.get(group_id)) is not None:
                group.offsets.replay_marker(producer_id, committed)
                group.charge()

    def ids(self) -> list[str]:
        """Ids of all groups, as a list that later changes do not affect."""
        return [*self.groups, *self.shares.groups]

    def activate(self, group_ids: Iterable[str], now: Now, budget: WorkBudget) -> Generator[None, None, GroupOutcome]:
        """Start live state for some groups, after the whole partition has been replayed. In slices."""
        step = self._step(now)
        for group_id in group_ids:
            if (share := self.shares.groups.get(group_id)) is not None:
                yield from self.shares.activate(step, share, budget)
            if (group := self.groups.get(group_id)) is None:
                continue
            yield from self._modern.activate(step, group, budget)
            yield from group.activate(budget)
            if len(group.members) > self._config.group_max_size:
                reason = f"Freshly-loaded group is over capacity ({self._config.group_max_size})"
                prepare_rebalance(step, group, reason)
            for member in group.members.values():
                restart_session(step, group, member)
                if budget.is_spent():
                    yield
            if budget.is_spent():
                yield
        return self._finish(step)

    def unload(self, now: Now) -> GroupOutcome:
        """Leadership is lost: fail waiting requests with NOT_COORDINATOR. Only `settle` may be called after."""
        step = self._step(now)
        for group in self.groups.values():
            group.release()
            group.transition_to(GroupState.DEAD, now.wall_ms)
            for member_id in list(group.join_tickets):
                respond_to_join(step, group, member_id, JoinResult(ErrorCode.NOT_COORDINATOR, member_id))
            for member_id in list(group.sync_tickets):
                respond_to_sync(step, group, member_id, SyncResult(ErrorCode.NOT_COORDINATOR))
        self.shares.unload(step)
        self.groups.clear()
        self.open_producers.clear()
        return self._finish(step)

    # --- inside

    def _has_room(self, group: Group | None, request: Growing) -> bool:
        needed = needed_bytes(group, request)
        return needed <= 0 or self._budget.has_room(charged_owner(group, request), needed)

    def _is_session_timeout_allowed(self, session_timeout_ms: int) -> bool:
        config = self._config
        return config.group_min_session_timeout_ms <= session_timeout_ms <= config.group_max_session_timeout_ms

    def _step(self, now: Now) -> GroupStep:
        return GroupStep(now, self._config, self._timers, self._counts)

    def _finish(self, step: GroupStep) -> GroupOutcome:
        for group in step.forgotten:
            self._drop(group)
        return step.outcome

    def _drop_if_nothing_is_left(self, group: Group) -> None:
        has_records = group.stored is not None or group.modern is not None or group.offsets.committed
        stays = has_records or group.stays_without_offsets or self._modern.consumers.has_successor(group)
        if not stays and group.state is GroupState.EMPTY:
            owner = group.owner
            self._drop(group)
            if group.offsets.pending:
                # A Kafka 3.9 deleted it with a transaction open: the marker may commit offsets, which start it again.
                successor = self.groups[group.group_id] = Group(group.group_id, self._budget)
                successor.offsets = group.offsets
                successor.written_up_to = group.written_up_to
                successor.owner = owner
                successor.charge()

    def _drop(self, group: Group) -> None:
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]
            group.release()
            group.state = GroupState.DEAD


def _ignore(step: GroupStep, error: ErrorCode) -> None:
    """Tombstones that did not get into the log are written by the next cleanup."""
