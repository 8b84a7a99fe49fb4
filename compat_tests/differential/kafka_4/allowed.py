"""The differences from Kafka 4.3.1 that are meant; see `allowed.py` of the folder above."""

from __future__ import annotations

from compat_tests.differential.allowed import ANYTHING, MISSING, Allowed
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

DEFAULTS = (
    "(coordinator.(rebalance.protocols|threads|append.linger.ms)|consumer.assignors|share.partition.max.record.locks)"
).replace(".", r"\.")

ALLOWED_NEXT_TO_4: tuple[Allowed, ...] = (
    Allowed("topics have the settings of Kafka 3.9", r"topics\[\d+\]\.configs.*", ApiKey.CREATE_TOPICS),
    Allowed(
        "the same: timestamps may be far ahead",
        r".*\.batch_index_error_message",
        ApiKey.PRODUCE,
        scripts="claims-limits-4",
    ),
    Allowed(
        "what is set nowhere has the default of Kafka 3.9",
        rf"results\[0\]\.configs\.(group\.)?{DEFAULTS}\.(value|synonyms\[\d+\]\.value)",
        ApiKey.DESCRIBE_CONFIGS,
        scripts="cg-config-keys|sg-settings-.*",
    ),
    Allowed(
        "keys are in the order of Kafka 3.9's hash table",
        r"results\[0\]\.configs\.order\[\d+\]",
        ApiKey.DESCRIBE_CONFIGS,
        scripts="cg-config-keys|sg-settings-.*",
    ),
    Allowed(
        "a set of names is written as by Kafka 3.9: Set(name)",
        r"responses\[0\]\.error_message",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        scripts="cg-config-updates|sg-settings-of-brokers-changed",
    ),
    Allowed(
        "Kafka stumbles over an epoch without a member id",
        r"groups\[0\]\.error_code",
        ApiKey.OFFSET_FETCH,
        label=".* v(9|10)",
        kafka=int(ErrorCode.UNKNOWN_SERVER_ERROR),
        ours=int(ErrorCode.UNKNOWN_MEMBER_ID),
    ),
    Allowed(
        "a classic group that rebalances shows no assignments, as in Kafka 3.9",
        r"groups\[0\]\.members\[\d+\]\.member_assignment",
        ApiKey.DESCRIBE_GROUPS,
        scripts="cg-(downgrade|upgrade)-.*|(states|static|describe)-.*-4",
        ours=b"",
    ),
    Allowed(
        "offsets that are too large for a batch have the error of Kafka 3.9",
        r"topics\[\d+\]\.partitions\[\d+\]\.error_code",
        ApiKey.OFFSET_COMMIT,
        scripts="commit-too-much-4",
        kafka=int(ErrorCode.UNKNOWN_SERVER_ERROR),
        ours=int(ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ),
    Allowed(
        "a follower that is refused receives the leader's address, as in Kafka 3.9",
        r"node_endpoints\[0\]",
        ApiKey.FETCH,
        scripts="fetch-replicas-4|id-fetch-high-watermarks-.*",
        kafka=MISSING,
    ),
    Allowed(
        "Kafka stumbles over an id of zeros that is not the first one of a request",
        ".*",
        ApiKey.FETCH,
        scripts="id-fetch-zeros-.*",
    ),
    Allowed(
        "one result for a partition whose offset is committed twice in a request",
        r"topics\[0\]\.partitions\[\d+\].*",
        ApiKey.OFFSET_COMMIT,
        label="step 6: .*",
        scripts="commit-too-much-4",
    ),
    *(
        Allowed(
            "the replicas of a reassignment are looked at before its partition, as in Kafka 3.9",
            r"responses\[\d+\]\.partitions\[\d+\]\.error_code",
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            scripts="(reassign|later-moves)-.*",
            kafka=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ours=int(code),
        )
        for code in (ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    ),
    Allowed(
        "of two reassignments of one partition in a request the later one counts, as in Kafka 3.9",
        r"responses\[0\]\.partitions\[\d+\].*",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        label="step 21: .*",
        scripts="reassign-partitions-4",
    ),
    Allowed(
        "a topic without partitions is left out, as in Kafka 3.9",
        r"responses\[0\]",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        scripts="(reassign|later-moves)-.*",
        ours=MISSING,
    ),
    Allowed(
        "texts about reassignments are those of Kafka 3.9",
        r"responses\[\d+\]\.partitions\[\d+\]\.error_message",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        scripts="(reassign|later-moves)-.*",
    ),
    Allowed(
        "Kafka stumbles over a partition that there is not in a classic assignment",
        ".*",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        scripts="cg-upgrade-many-partitions",
    ),
    Allowed(
        "an offset that is pending in a transaction is not forgotten with its group",
        r"groups\[0\]\.topics\[0\]\.partitions\[1\]\.error_code",
        ApiKey.OFFSET_FETCH,
        scripts="cg-states-txn-commit",
        kafka=int(ErrorCode.NONE),
        ours=int(ErrorCode.UNSTABLE_OFFSET_COMMIT),
    ),
    *(
        Allowed(
            "Kafka stumbles over the id of a topic that there is not",
            path,
            ApiKey.SHARE_FETCH,
            scripts="sg-(fetch|acquire|topic|made-again)-.*",
            kafka=kafka,
        )
        for path, kafka in (
            ("error_code", int(ErrorCode.UNKNOWN_SERVER_ERROR)),
            ("acquisition_lock_timeout_ms", 0),
            (r"responses\[0\]", MISSING),
        )
    ),
    *(
        Allowed(
            "Kafka tries to read the state of a deleted group's partition again for each fetch: one that does not wait "
            "has the error, or ends before it is known",
            path,
            ApiKey.SHARE_FETCH,
            label="step 1[2-5]: .*",
            scripts="sg-acquire-deleted",
            kafka=kafka,
            ours=ours,
        )
        for path, kafka, ours in (
            (r"responses\[0\]", ANYTHING, MISSING),
            (r"responses\[0\]\.partitions\[0\]\.error_code", int(ErrorCode.UNKNOWN_SERVER_ERROR), int(ErrorCode.NONE)),
        )
    ),
    *(
        Allowed("the default text of an error code is in our own words", ".*error_message", kafka=kafka, ours=ours)
        for kafka, ours in (
            ("The group is not empty.", "The group still has members."),
            ("Group authorization failed.", "Not authorized for the group."),
            ("Topic authorization failed.", "Not authorized for the topic."),
            ("This server does not host this topic-partition.", "This broker does not host the partition."),
        )
    ),
    Allowed(
        "a partition whose state could not be read is forgotten at once",
        r"responses\[0\]\.partitions\[0\]\.acknowledge_error_code",
        ApiKey.SHARE_FETCH,
        scripts="sg-acquire-.*",
        kafka=int(ErrorCode.INVALID_RECORD_STATE),
        ours=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ),
    Allowed(
        "Kafka stumbles over a start offset within an aborted batch",
        r"responses\[0\]\.partitions\[0\]\.error_code",
        ApiKey.SHARE_FETCH,
        scripts="sg-committed-reset-in-the-middle",
        kafka=int(ErrorCode.UNKNOWN_SERVER_ERROR),
        ours=int(ErrorCode.NONE),
    ),
    Allowed(
        "the size of a group is a number of Kafka 3.9's type",
        r"results\[0\]\.configs\.group\.share\.max\.size\.config_type",
        ApiKey.DESCRIBE_CONFIGS,
        scripts="sg-settings-.*",
    ),
    Allowed(
        "a partition whose state could not be read is forgotten at once",
        r"responses\[0\]\.partitions\[0\]\.acknowledge_error_message",
        ApiKey.SHARE_FETCH,
        scripts="sg-acquire-.*",
        ours="This broker does not host the partition.",
    ),
    Allowed(
        "Kafka stumbles over a group of no name",
        r"responses\[0\]",
        ApiKey.SHARE_FETCH,
        scripts="sg-member-member-ids",
        ours=MISSING,
    ),
    Allowed(
        "Kafka stumbles over a request about no partitions, and over partitions below 0",
        r"groups\[0\]\.(error_code|error_message|topics\[\d+\])",
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        scripts="sg-odd-offsets",
    ),
    Allowed(
        "the partitions of internal topics are described also where they were there before the group",
        r"groups\[\d+\]\.topology\.subtopologies\[1\]\.(state_changelog|repartition_source)_topics\[0\]\.partitions",
        ApiKey.STREAMS_GROUP_DESCRIBE,
        scripts="st-.*-counting",
        kafka=0,
    ),
    Allowed(
        "Kafka does not find groups by the state NotReady",
        r"groups\[0\]",
        ApiKey.LIST_GROUPS,
        scripts="st-list-(not-ready|topic-deleted)",
        kafka=MISSING,
    ),
)
