"""Kafka's error codes; KafkaError for what a client can cause, ProtocolError for malformed bytes.

`ErrorCode` has Kafka's numbers and names; the texts are ours and reach clients wherever a response has an
error message. Codes above 127 belong to Kafka 4.x and are here only for their names. Not here: which API
returns which code.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ErrorCode(IntEnum):
    """Kafka's `Errors`."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def message(self) -> str:
        """The error message for clients where there is no more precise one."""
        return MESSAGES[self]


class KafkaError(Exception):
    """A request that cannot be served: becomes `code` and `message` in the response."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = code.message if message is None else message
        super().__init__(f"{code.name}: {self.message}")


class ProtocolError(Exception):
    """Bytes that do not follow the protocol: the only exception that decoding raises."""


_TEXTS: Final = """
UNKNOWN_SERVER_ERROR The broker hit an unexpected error while serving the request.
NONE No error.
OFFSET_OUT_OF_RANGE The offset lies outside the offsets this broker keeps for the partition.
CORRUPT_MESSAGE A record batch fails its checksum, has an invalid size, or lacks a key in a compacted topic.
UNKNOWN_TOPIC_OR_PARTITION This broker does not host the partition.
INVALID_FETCH_SIZE The requested size is not valid.
LEADER_NOT_AVAILABLE The partition has no leader at the moment; an election is under way.
NOT_LEADER_OR_FOLLOWER This broker is not the partition's leader, or holds no replica of it.
REQUEST_TIMED_OUT The request was not completed in time.
BROKER_NOT_AVAILABLE The broker is not available.
REPLICA_NOT_AVAILABLE The requested replica is not available.
MESSAGE_TOO_LARGE The request holds a message larger than this broker or topic accepts.
STALE_CONTROLLER_EPOCH The request was sent by a former controller.
OFFSET_METADATA_TOO_LARGE The metadata text of a committed offset is too long.
NETWORK_EXCEPTION The connection ended before the response arrived.
COORDINATOR_LOAD_IN_PROGRESS The coordinator is still loading its state.
COORDINATOR_NOT_AVAILABLE The coordinator is not available.
NOT_COORDINATOR This broker is not the requested coordinator.
INVALID_TOPIC_EXCEPTION The topic's name is not valid, or the topic may not be used this way.
RECORD_LIST_TOO_LARGE A batch is larger than a log segment may be.
NOT_ENOUGH_REPLICAS Fewer replicas are in sync than the topic requires; nothing was written.
NOT_ENOUGH_REPLICAS_AFTER_APPEND Written, but to fewer in-sync replicas than the topic requires.
INVALID_REQUIRED_ACKS The number of acknowledgements must be -1, 0 or 1.
ILLEGAL_GENERATION The group has moved on to another generation.
INCONSISTENT_GROUP_PROTOCOL The member's protocols do not fit those of the group, or it offers none.
INVALID_GROUP_ID The group id is not valid.
UNKNOWN_MEMBER_ID The group has no such member.
INVALID_SESSION_TIMEOUT The session timeout is outside the broker's bounds.
REBALANCE_IN_PROGRESS The group is rebalancing; join again.
INVALID_COMMIT_OFFSET_SIZE The offsets to commit are too large to store.
TOPIC_AUTHORIZATION_FAILED Not authorized for the topic.
GROUP_AUTHORIZATION_FAILED Not authorized for the group.
CLUSTER_AUTHORIZATION_FAILED Not authorized for the cluster.
INVALID_TIMESTAMP A record's timestamp is outside the accepted range.
UNSUPPORTED_SASL_MECHANISM This broker does not offer the SASL mechanism.
ILLEGAL_SASL_STATE The request is out of place in the SASL exchange.
UNSUPPORTED_VERSION This version of the API is not supported.
TOPIC_ALREADY_EXISTS A topic of this name exists already.
INVALID_PARTITIONS The number of partitions is not valid.
INVALID_REPLICATION_FACTOR The replication factor is below 1 or above the number of available brokers.
INVALID_REPLICA_ASSIGNMENT The replica assignment is not valid.
INVALID_CONFIG A configuration value is not valid.
NOT_CONTROLLER This broker is not the controller.
INVALID_REQUEST The request is malformed or contradicts itself.
UNSUPPORTED_FOR_MESSAGE_FORMAT The topic's message format cannot serve this request.
POLICY_VIOLATION A configured policy forbids the request.
OUT_OF_ORDER_SEQUENCE_NUMBER The producer's sequence number leaves a gap.
DUPLICATE_SEQUENCE_NUMBER The producer's sequence number was used before.
INVALID_PRODUCER_EPOCH The producer's epoch is out of date.
INVALID_TXN_STATE The transaction's state does not allow this operation.
INVALID_PRODUCER_ID_MAPPING The producer id is not the one assigned to the transactional id.
INVALID_TRANSACTION_TIMEOUT The transaction timeout is above the broker's maximum, or not positive.
CONCURRENT_TRANSACTIONS Another operation on the same transaction is still under way.
TRANSACTION_COORDINATOR_FENCED The transaction marker was sent by a former coordinator.
TRANSACTIONAL_ID_AUTHORIZATION_FAILED Not authorized for the transactional id.
SECURITY_DISABLED No authorizer is configured on this broker.
OPERATION_NOT_ATTEMPTED The operation was not tried because others in the request failed.
KAFKA_STORAGE_ERROR The partition's log directory has failed or is full.
LOG_DIR_NOT_FOUND The broker has no such log directory.
SASL_AUTHENTICATION_FAILED SASL authentication failed.
UNKNOWN_PRODUCER_ID The broker no longer knows the producer id.
REASSIGNMENT_IN_PROGRESS A reassignment of the partition is under way.
DELEGATION_TOKEN_AUTH_DISABLED Delegation tokens are not enabled.
DELEGATION_TOKEN_NOT_FOUND There is no such delegation token.
DELEGATION_TOKEN_OWNER_MISMATCH The principal neither owns nor may renew the delegation token.
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED This connection may not ask for delegation tokens.
DELEGATION_TOKEN_AUTHORIZATION_FAILED Not authorized for the delegation token.
DELEGATION_TOKEN_EXPIRED The delegation token has expired.
INVALID_PRINCIPAL_TYPE This type of principal is not supported.
NON_EMPTY_GROUP The group still has members.
GROUP_ID_NOT_FOUND There is no such group.
FETCH_SESSION_ID_NOT_FOUND There is no such fetch session.
INVALID_FETCH_SESSION_EPOCH The fetch session's epoch is not the one expected.
LISTENER_NOT_FOUND The leader has no listener of the name this request came through.
TOPIC_DELETION_DISABLED Deleting topics is disabled on this broker.
FENCED_LEADER_EPOCH The leader epoch in the request is older than the broker's.
UNKNOWN_LEADER_EPOCH The leader epoch in the request is newer than the broker's.
UNSUPPORTED_COMPRESSION_TYPE This version of the request cannot carry the partition's compression type.
STALE_BROKER_EPOCH The broker has registered again since the request was made.
OFFSET_NOT_AVAILABLE A new leader has not yet reached the offset up to which responses are safe.
MEMBER_ID_REQUIRED Join again with the member id given in this response.
PREFERRED_LEADER_NOT_AVAILABLE The preferred leader is not available.
GROUP_MAX_SIZE_REACHED The group has as many members as the broker allows.
FENCED_INSTANCE_ID Another member has taken over this group instance id.
ELIGIBLE_LEADERS_NOT_AVAILABLE No replica that may lead is available.
ELECTION_NOT_NEEDED The partition needs no election.
NO_REASSIGNMENT_IN_PROGRESS The partition is not being reassigned.
GROUP_SUBSCRIBED_TO_TOPIC The group is subscribed to the topic, so its offsets may not be deleted.
INVALID_RECORD A record failed validation.
UNSTABLE_OFFSET_COMMIT Offsets of an open transaction prevent it.
THROTTLING_QUOTA_EXCEEDED The quota for such requests is used up.
PRODUCER_FENCED A newer producer uses the same transactional id.
RESOURCE_NOT_FOUND The resource does not exist.
DUPLICATE_RESOURCE The request names a resource twice.
UNACCEPTABLE_CREDENTIAL The credential does not meet the requirements.
INCONSISTENT_VOTER_SET Sender or receiver is not among the expected voters.
INVALID_UPDATE_VERSION The version to update to is not valid.
FEATURE_UPDATE_FAILED The finalized features could not be updated.
PRINCIPAL_DESERIALIZATION_FAILURE The principal in a forwarded request cannot be read.
SNAPSHOT_NOT_FOUND There is no such snapshot.
POSITION_OUT_OF_RANGE The position lies outside the snapshot.
UNKNOWN_TOPIC_ID This broker hosts no topic with this id.
DUPLICATE_BROKER_REGISTRATION Another broker has this broker id.
BROKER_ID_NOT_REGISTERED No broker is registered under this id.
INCONSISTENT_TOPIC_ID The topic id in the request is not that of the log.
INCONSISTENT_CLUSTER_ID The request names another cluster.
TRANSACTIONAL_ID_NOT_FOUND There is no such transactional id.
FETCH_SESSION_TOPIC_ID_ERROR The fetch session mixes topics with and without ids.
INELIGIBLE_REPLICA The proposed ISR holds a replica that may not join it.
NEW_LEADER_ELECTED The change was made, and with it the leader changed.
OFFSET_MOVED_TO_TIERED_STORAGE The offset has moved to tiered storage.
FENCED_MEMBER_EPOCH The member's epoch is fenced: give up all partitions and join again.
UNRELEASED_INSTANCE_ID Another member still uses this group instance id.
UNSUPPORTED_ASSIGNOR The group does not support this assignor.
STALE_MEMBER_EPOCH The member's epoch is out of date: heartbeat first, then try again.
MISMATCHED_ENDPOINT_TYPE The request was sent to an endpoint of the other type.
UNSUPPORTED_ENDPOINT_TYPE This endpoint type is not supported.
UNKNOWN_CONTROLLER_ID There is no such controller.
UNKNOWN_SUBSCRIPTION_ID The telemetry subscription id is unknown or out of date.
TELEMETRY_TOO_LARGE The telemetry is larger than the broker accepts.
INVALID_REGISTRATION The controller refused the broker's registration.
TRANSACTION_ABORTABLE The transaction can only be aborted; then the transactional id can be used again.
INVALID_RECORD_STATE The records are not in a state that allows this acknowledgement.
SHARE_SESSION_NOT_FOUND There is no such share session.
INVALID_SHARE_SESSION_EPOCH The share session's epoch is not the one expected.
FENCED_STATE_EPOCH The share group's state epoch is not the one expected.
INVALID_VOTER_KEY The voter key is not the receiver's.
DUPLICATE_VOTER The voter is already in the set.
VOTER_NOT_FOUND The voter is not in the set.
INVALID_REGULAR_EXPRESSION The regular expression is not valid.
REBOOTSTRAP_REQUIRED The client must find the cluster again from its bootstrap servers.
STREAMS_INVALID_TOPOLOGY The topology is not valid.
STREAMS_INVALID_TOPOLOGY_EPOCH The epoch of the topology is not valid.
STREAMS_TOPOLOGY_FENCED The epoch of the topology is older than that of the group.
SHARE_SESSION_LIMIT_REACHED The broker has as many share sessions as it allows.
"""

MESSAGES: Final[dict[ErrorCode, str]] = {
    ErrorCode[name]: text for name, _, text in (line.partition(" ") for line in _TEXTS.strip().splitlines())
}
