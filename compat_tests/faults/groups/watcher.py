"""Who asks each broker, past the proxies, for a group's commits and epochs, and tries what must be refused."""

from __future__ import annotations

from collections.abc import Sequence

from compat_tests.faults.clients.watchers import (
    AtBroker,
    GroupWatch,
    as_coordinator,
    false_commit,
    is_accepted,
    look_at_commits,
)
from compat_tests.faults.groups.history import EpochLook, GroupHistory, GroupProtocol
from compat_tests.faults.history import CommitLook, History, Partition
from compat_tests.overload.raw import Raw
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

DESCRIBE_VERSION = 1
COMMIT_BY_EPOCH_VERSION = 9
CONSUMER_MEMBER = 1
"""A member that uses the new protocol, in ConsumerGroupDescribe 1."""
FORMER_EPOCH = 0
"""No member that owns a partition has had it since then."""
STEPS_PER_FALSE_COMMIT = 4


class GroupWatcher(AtBroker):
    """One broker, all groups."""

    def __init__(
        self, history: History, broker: int, port: int, groups: Sequence[GroupHistory], partitions: Sequence[Partition]
    ) -> None:
        super().__init__("group watcher", history, broker, port)
        self._groups = [(group, GroupWatch(group.name, partitions, lambda: None)) for group in groups]
        self._steps = 0

    def step(self, connection: Raw) -> None:
        self._steps += 1
        for group, watch in self._groups:
            for look, partition, offset in look_at_commits(connection, watch):
                commit_look = CommitLook(look.time_ns, self.broker, look.leader_epoch, offset)
                group.commit_looks[partition].append(commit_look)
            if group.protocol is not GroupProtocol.CLASSIC:
                self._look_at_epochs(connection, group, watch)

    def _look_at_epochs(self, connection: Raw, group: GroupHistory, watch: GroupWatch) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=[group.name])
        response, look = as_coordinator(connection, watch, lambda: connection.ask(request, DESCRIBE_VERSION))
        (found,) = response.groups
        if look is None or found.error_code != ErrorCode.NONE:
            return
        epochs = {member.member_id: member.member_epoch for member in found.members}
        seen = EpochLook(
            look.time_ns, self.broker, look.leader_epoch, found.group_epoch, found.assignment_epoch, epochs
        )
        group.epoch_looks.append(seen)
        if self._steps % STEPS_PER_FALSE_COMMIT == 0:
            for member in found.members:
                if member.member_type == CONSUMER_MEMBER:
                    self._commit_falsely(connection, group.name, member)

    def _commit_falsely(self, connection: Raw, group: str, member: ConsumerGroupDescribeResponse.Member) -> None:
        """In the member's name, of what it has, with an epoch before it had that."""
        owned = [
            (topic.topic_name, index) for topic in member.assignment.topic_partitions for index in topic.partitions
        ]
        if not owned:
            return
        request = false_commit(group, member.member_id, FORMER_EPOCH, owned)
        if is_accepted(connection.ask(request, COMMIT_BY_EPOCH_VERSION)):
            self.history.failures.append(
                f"{self.broker} took a commit of {member.member_id} of {group} in epoch {FORMER_EPOCH}"
            )
