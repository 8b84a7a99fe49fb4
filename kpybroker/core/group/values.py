"""Requests to the group state machine, its replies, and its settings; independent of API versions.

Names are Kafka's. An absent protocol type, protocol name or instance id is None; an absent member id is "".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.log.verification import NO_VERIFICATION, VerificationGuard
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.constants import INT32_MAX
from kpybroker.wire.errors import ErrorCode

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1
NO_LEADER = ""
CONSUMER_PROTOCOL_TYPE = "consumer"
CLASSIC_GROUP_TYPE = "classic"

# GroupCoordinator.NewMemberJoinTimeoutMs: how long a member that does not know its id may wait in a join.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class GroupState(Enum):
    """The five states of a classic group; the values are the names in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


# From which states a state may be entered (GroupState.validPreviousStates).
VALID_PREVIOUS: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The `group.*` and `offsets.*` keys that the state machine uses, with Kafka 3.9's defaults."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = INT32_MAX
    group_initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 10_080 * 60 * 1000


Protocols = tuple[tuple[str, bytes], ...]
NOT_COUNTED: Final = -1
"""In place of a size in bytes that no one has computed yet."""


@dataclass(frozen=True, slots=True)
class Join:
    """JoinGroup; `new_member_id` is the id for a member that has none, drawn by the caller; "" for one that has.

    `rights` is returned in the effect that resolves the patterns of other members, if the group is a consumer group.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    new_member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    require_known_member_id: bool
    support_skipping_assignment: bool
    reason: str
    rights: object = None
    owner: Owner = UNOWNED
    protocols_size: int = NOT_COUNTED  # bytes in memory


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member in the leader's JoinGroup response, with its metadata for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinResult:
    """Replies to Join: the generation, its protocol and leader; `members` only for the leader."""

    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_LEADER
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Sync:
    """SyncGroup; `assignments` by member id, given by the leader only."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]
    owner: Owner = UNOWNED


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Replies to Sync with the member's assignment, in the bytes of the client's protocol."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member of a generation shows that it is alive. The reply is an ErrorCode."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


@dataclass(frozen=True, slots=True)
class LeavingMember:
    """One member of a LeaveGroup, named by member id, by instance id, or by both."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """LeaveGroup for one or more members (KIP-345)."""

    group_id: str
    members: tuple[LeavingMember, ...]


@dataclass(frozen=True, slots=True)
class LeaveResult:
    """`members` pairs each leaving member of the request with its error."""

    error: ErrorCode
    members: tuple[tuple[LeavingMember, ErrorCode], ...] = ()


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """OffsetCommit, or with a producer id TxnOffsetCommit: offsets stay pending until the marker.

    The guard shows that the transaction has been verified (KIP-890). `as_kafka_4`: consumer groups are served, and of a
    group that does not exist Kafka 4 responds otherwise than Kafka 3.9.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    offsets: Mapping[PartitionKey, OffsetAndMetadata]
    producer_id: int = -1
    producer_epoch: int = -1
    verification_guard: VerificationGuard = NO_VERIFICATION
    owner: Owner = UNOWNED
    has_member_epoch: bool = True  # OffsetCommit 9 and later: `generation_id` may be a member epoch
    as_kafka_4: bool = False

    @property
    def is_transactional(self) -> bool:
        """Whether the offsets belong to a transaction (TxnOffsetCommit)."""
        return self.producer_id != -1


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Replies to CommitOffsets with one error a partition."""

    errors: Mapping[PartitionKey, ErrorCode]


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    """OffsetFetch; `partitions` None asks for every offset of the group.

    A member of a consumer group names itself and its epoch (version 9); anyone else neither. `topic_ids` are those that
    the client has for its topics (version 10): what was committed for a topic of another id does not count.
    """

    group_id: str
    partitions: tuple[PartitionKey, ...] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """The committed offset of one partition; offset -1 where there is none."""

    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchOffsetsResult:
    """Replies to FetchOffsets; `offsets` is empty with a group error."""

    error: ErrorCode
    offsets: Mapping[PartitionKey, FetchedOffset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribeGroup:
    """Asks for state, protocol and members of one group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member in a DescribeGroups response; bytes are empty unless the group is stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """Replies to DescribeGroup; a group that does not exist is Dead, and so is one that is not classic.

    `not_found` says which of them it is, as Kafka does.
    """

    error: ErrorCode
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    not_found: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Asks to delete an Empty group with its offsets. The reply is an ErrorCode."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """Asks to delete committed offsets of some partitions (KIP-496). `keeps_group`: a group without members that has
    none left stays until the next cleanup.
    """

    group_id: str
    partitions: tuple[PartitionKey, ...]
    keeps_group: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOffsetsResult:
    """Replies to DeleteOffsets; with a group error, `errors` is empty."""

    error: ErrorCode
    errors: Mapping[PartitionKey, ErrorCode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupOverview:
    """A row of ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str = CLASSIC_GROUP_TYPE
