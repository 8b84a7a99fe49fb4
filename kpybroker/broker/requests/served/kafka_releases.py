"""Which API versions a broker of each Kafka release serves, from its own jar: up to 3.9 in ZooKeeper mode.

`TABLE` and `KRAFT_TABLE` are written by `python -m compat_tests.protocol.kafka_releases`. They have a column for each
of `ZOOKEEPER_RELEASES` and `KRAFT_RELEASES`: the newest version, `oldest-newest` where the oldest is not 0, `-` where
the release has no such API.
"""

from __future__ import annotations

from collections.abc import Mapping

from kpybroker.core.features import FEATURES
from kpybroker.wire.api import ApiKey

ZOOKEEPER_RELEASES = (
    *("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"),
    *("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
)
KRAFT_RELEASES = ("4.0", "4.1", "4.2", "4.3")
RELEASES = (*ZOOKEEPER_RELEASES, *KRAFT_RELEASES)

Range = tuple[int, int]
"""(oldest, newest)."""

BETWEEN_BROKERS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
"""APIs that only brokers call, and only with ZooKeeper: from 4.0 on a broker does not have them any more."""

LISTS_OWN_RANGE_SINCE = "2.4"
"""From this release on, the response to a version of ApiVersions that is too new names the ones that are served."""


def release_named(name: str) -> str | None:
    """The release that a version belongs to: `2.4.1` to `2.4`; None for one that is not in the table."""
    parts = name.split(".")
    wanted = ".".join(parts[: 3 if parts[0] == "0" else 2])
    return wanted if wanted in RELEASES and all(part.isdigit() for part in parts) else None


def versions_of(release: str) -> dict[ApiKey, Range]:
    """What a broker of a release in the table serves."""
    releases, table = (ZOOKEEPER_RELEASES, TABLE) if release in ZOOKEEPER_RELEASES else (KRAFT_RELEASES, KRAFT_TABLE)
    column = 1 + releases.index(release)
    rows = [line.split() for line in table.strip().splitlines()]
    return {ApiKey[row[0]]: _range(row[column]) for row in rows if row[column] != "-"}


def lists_own_range(release: str) -> bool:
    """Whether it helps a client that asked with a version of ApiVersions that is too new (KIP-511)."""
    return RELEASES.index(release) >= RELEASES.index(LISTS_OWN_RANGE_SINCE)


def levels_of(release: str) -> dict[str, int]:
    """The newest level of each feature that a broker of a release supports; 0 where it has none of it."""
    age = RELEASES.index(release)
    return {
        feature.name: max(
            (n for n, level in enumerate(feature.levels) if RELEASES.index(level.since) <= age), default=0
        )
        for feature in FEATURES
    }


def _range(cell: str) -> Range:
    oldest, _, newest = cell.rpartition("-")
    return int(oldest or 0), int(newest)


def capped(served: Mapping[ApiKey, Range], cap: Mapping[ApiKey, Range]) -> dict[ApiKey, Range]:
    """What is served of both."""
    found = {}
    for key, (oldest, newest) in served.items():
        if key in cap and (lowest := max(oldest, cap[key][0])) <= (highest := min(newest, cap[key][1])):
            found[key] = (lowest, highest)
    return found


TABLE = """
PRODUCE                          2  2  2  3  5  5  6  7  7  7  8  8  8  8  9  9  9  9  9  9  9  9 10 11 11
FETCH                            2  3  3  5  6  7  8 10 10 11 11 11 11 12 12 12 13 13 13 13 15 15 16 16 17
LIST_OFFSETS                     0  1  1  2  2  2  3  4  5  5  5  5  5  5  6  7  7  7  7  7  8  8  8  8  9
METADATA                         1  2  2  4  5  5  6  7  7  8  9  9  9  9 11 11 12 12 12 12 12 12 12 12 12
LEADER_AND_ISR                   0  0  0  0  1  1  1  1  2  2  4  4  4  4  5  5  5  6  6  7  7  7  7  7  7
STOP_REPLICA                     0  0  0  0  0  0  0  0  1  1  2  2  3  3  3  3  3  3  3  4  4  4  4  4  4
UPDATE_METADATA                  2  2  3  3  4  4  4  4  5  5  6  6  6  6  7  7  7  7  7  8  8  8  8  8  8
CONTROLLED_SHUTDOWN             1-1 1-1 1-1 1-1  1  1  1  1  2  2  3  3  3  3  3  3  3  3  3  3  3  3  3  3  3
OFFSET_COMMIT                    2  2  2  3  3  3  4  6  6  7  8  8  8  8  8  8  8  8  8  8  8  8  9  9  9
OFFSET_FETCH                     1  1  2  3  3  3  4  5  5  5  6  7  7  7  7  8  8  8  8  8  8  8  9  9  9
FIND_COORDINATOR                 0  0  0  1  1  1  2  2  2  2  3  3  3  3  3  4  4  4  4  4  4  4  4  5  6
JOIN_GROUP                       0  1  1  2  2  2  3  3  4  5  6  7  7  7  7  7  7  9  9  9  9  9  9  9  9
HEARTBEAT                        0  0  0  1  1  1  2  2  2  3  4  4  4  4  4  4  4  4  4  4  4  4  4  4  4
LEAVE_GROUP                      0  0  0  1  1  1  2  2  2  2  4  4  4  4  4  4  4  5  5  5  5  5  5  5  5
SYNC_GROUP                       0  0  0  1  1  1  2  2  2  3  4  5  5  5  5  5  5  5  5  5  5  5  5  5  5
DESCRIBE_GROUPS                  0  0  0  1  1  1  2  2  2  3  5  5  5  5  5  5  5  5  5  5  5  5  5  5  5
LIST_GROUPS                      0  0  0  1  1  1  2  2  2  2  3  3  4  4  4  4  4  4  4  4  4  4  4  5  5
SASL_HANDSHAKE                   0  0  0  0  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1
API_VERSIONS                     0  0  0  1  1  1  2  2  2  2  3  3  3  3  3  3  3  3  3  3  3  3  3  3  4
CREATE_TOPICS                    -  0  1  2  2  2  3  3  3  3  5  5  5  6  7  7  7  7  7  7  7  7  7  7  7
DELETE_TOPICS                    -  0  0  1  1  1  2  3  3  3  4  4  4  5  6  6  6  6  6  6  6  6  6  6  6
DELETE_RECORDS                   -  -  -  0  0  0  1  1  1  1  1  1  2  2  2  2  2  2  2  2  2  2  2  2  2
INIT_PRODUCER_ID                 -  -  -  0  0  0  1  1  1  1  2  3  3  4  4  4  4  4  4  4  4  4  4  5  5
OFFSET_FOR_LEADER_EPOCH          -  -  -  0  0  0  1  2  2  3  3  3  3  3  4  4  4  4  4  4  4  4  4  4  4
ADD_PARTITIONS_TO_TXN            -  -  -  0  0  0  1  1  1  1  1  1  1  2  3  3  3  3  3  3  3  4  4  5  5
ADD_OFFSETS_TO_TXN               -  -  -  0  0  0  1  1  1  1  1  1  1  2  3  3  3  3  3  3  3  3  3  4  4
END_TXN                          -  -  -  0  0  0  1  1  1  1  1  1  1  2  3  3  3  3  3  3  3  3  3  4  4
WRITE_TXN_MARKERS                -  -  -  0  0  0  0  0  0  0  0  0  0  0  1  1  1  1  1  1  1  1  1  1  1
TXN_OFFSET_COMMIT                -  -  -  0  0  0  1  2  2  2  2  3  3  3  3  3  3  3  3  3  3  3  3  4  4
DESCRIBE_ACLS                    -  -  -  0  0  0  1  1  1  1  1  2  2  2  2  2  2  2  3  3  3  3  3  3  3
CREATE_ACLS                      -  -  -  0  0  0  1  1  1  1  1  2  2  2  2  2  2  2  3  3  3  3  3  3  3
DELETE_ACLS                      -  -  -  0  0  0  1  1  1  1  1  2  2  2  2  2  2  2  3  3  3  3  3  3  3
DESCRIBE_CONFIGS                 -  -  -  0  0  1  2  2  2  2  2  2  3  3  4  4  4  4  4  4  4  4  4  4  4
ALTER_CONFIGS                    -  -  -  0  0  0  1  1  1  1  1  1  1  1  2  2  2  2  2  2  2  2  2  2  2
ALTER_REPLICA_LOG_DIRS           -  -  -  -  0  0  1  1  1  1  1  1  1  1  2  2  2  2  2  2  2  2  2  2  2
DESCRIBE_LOG_DIRS                -  -  -  -  0  0  1  1  1  1  1  1  2  2  2  2  2  3  4  4  4  4  4  4  4
SASL_AUTHENTICATE                -  -  -  -  0  0  0  0  1  1  1  2  2  2  2  2  2  2  2  2  2  2  2  2  2
CREATE_PARTITIONS                -  -  -  -  0  0  1  1  1  1  1  2  2  3  3  3  3  3  3  3  3  3  3  3  3
CREATE_DELEGATION_TOKEN          -  -  -  -  -  0  1  1  1  1  2  2  2  2  2  2  2  2  3  3  3  3  3  3  3
RENEW_DELEGATION_TOKEN           -  -  -  -  -  0  1  1  1  1  1  2  2  2  2  2  2  2  2  2  2  2  2  2  2
EXPIRE_DELEGATION_TOKEN          -  -  -  -  -  0  1  1  1  1  1  2  2  2  2  2  2  2  2  2  2  2  2  2  2
DESCRIBE_DELEGATION_TOKEN        -  -  -  -  -  0  1  1  1  1  1  2  2  2  2  2  2  2  3  3  3  3  3  3  3
DELETE_GROUPS                    -  -  -  -  -  0  1  1  1  1  2  2  2  2  2  2  2  2  2  2  2  2  2  2  2
ELECT_LEADERS                    -  -  -  -  -  -  -  -  0  0  2  2  2  2  2  2  2  2  2  2  2  2  2  2  2
INCREMENTAL_ALTER_CONFIGS        -  -  -  -  -  -  -  -  -  0  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1
ALTER_PARTITION_REASSIGNMENTS    -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0
LIST_PARTITION_REASSIGNMENTS     -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0
OFFSET_DELETE                    -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0  0  0  0  0  0
DESCRIBE_CLIENT_QUOTAS           -  -  -  -  -  -  -  -  -  -  -  -  0  0  1  1  1  1  1  1  1  1  1  1  1
ALTER_CLIENT_QUOTAS              -  -  -  -  -  -  -  -  -  -  -  -  0  0  1  1  1  1  1  1  1  1  1  1  1
DESCRIBE_USER_SCRAM_CREDENTIALS  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0  0  0
ALTER_USER_SCRAM_CREDENTIALS     -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0  0  0
ALTER_PARTITION                  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  1  2  2  3  3  3  3  3
UPDATE_FEATURES                  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  1  1  1  1  1  1  1
ENVELOPE                         -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0
DESCRIBE_CLUSTER                 -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  1  1  1
DESCRIBE_PRODUCERS               -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0  0
DESCRIBE_TRANSACTIONS            -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0
LIST_TRANSACTIONS                -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  1  1
ALLOCATE_PRODUCER_IDS            -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0  0  0  0  0  0  0  0
CONSUMER_GROUP_HEARTBEAT         -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0  0
CONSUMER_GROUP_DESCRIBE          -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  -  0  0
"""

KRAFT_TABLE = """
PRODUCE                         12 13 13 13
FETCH                           4-17 4-18 4-18 4-18
LIST_OFFSETS                    1-10 1-10 1-11 1-11
METADATA                        13 13 13 13
OFFSET_COMMIT                   2-9 2-9 2-10 2-10
OFFSET_FETCH                    1-9 1-9 1-10 1-10
FIND_COORDINATOR                 6  6  6  6
JOIN_GROUP                       9  9  9  9
HEARTBEAT                        4  4  4  4
LEAVE_GROUP                      5  5  5  5
SYNC_GROUP                       5  5  5  5
DESCRIBE_GROUPS                  6  6  6  6
LIST_GROUPS                      5  5  5  5
SASL_HANDSHAKE                   1  1  1  1
API_VERSIONS                     4  4  4  4
CREATE_TOPICS                   2-7 2-7 2-7 2-7
DELETE_TOPICS                   1-6 1-6 1-6 1-6
DELETE_RECORDS                   2  2  2  2
INIT_PRODUCER_ID                 5  5  5  5
OFFSET_FOR_LEADER_EPOCH         2-4 2-4 2-4 2-4
ADD_PARTITIONS_TO_TXN            5  5  5  5
ADD_OFFSETS_TO_TXN               4  4  4  4
END_TXN                          5  5  5  5
WRITE_TXN_MARKERS               1-1 1-1 1-2 1-2
TXN_OFFSET_COMMIT                5  5  5  5
DESCRIBE_ACLS                   1-3 1-3 1-3 1-3
CREATE_ACLS                     1-3 1-3 1-3 1-3
DELETE_ACLS                     1-3 1-3 1-3 1-3
DESCRIBE_CONFIGS                1-4 1-4 1-4 1-4
ALTER_CONFIGS                    2  2  2  2
ALTER_REPLICA_LOG_DIRS          1-2 1-2 1-2 1-2
DESCRIBE_LOG_DIRS               1-4 1-4 1-4 1-5
SASL_AUTHENTICATE                2  2  2  2
CREATE_PARTITIONS                3  3  3  3
CREATE_DELEGATION_TOKEN         1-3 1-3 1-3 1-3
RENEW_DELEGATION_TOKEN          1-2 1-2 1-2 1-2
EXPIRE_DELEGATION_TOKEN         1-2 1-2 1-2 1-2
DESCRIBE_DELEGATION_TOKEN       1-3 1-3 1-3 1-3
DELETE_GROUPS                    2  2  2  2
ELECT_LEADERS                    2  2  2  2
INCREMENTAL_ALTER_CONFIGS        1  1  1  1
ALTER_PARTITION_REASSIGNMENTS    0  1  1  1
LIST_PARTITION_REASSIGNMENTS     0  0  0  0
OFFSET_DELETE                    0  0  0  0
DESCRIBE_CLIENT_QUOTAS           1  1  1  1
ALTER_CLIENT_QUOTAS              1  1  1  1
DESCRIBE_USER_SCRAM_CREDENTIALS  0  0  0  0
ALTER_USER_SCRAM_CREDENTIALS     0  0  0  0
UPDATE_FEATURES                  2  2  2  2
DESCRIBE_CLUSTER                 2  2  2  2
DESCRIBE_PRODUCERS               0  0  0  0
DESCRIBE_TRANSACTIONS            0  0  0  0
LIST_TRANSACTIONS                1  2  2  2
CONSUMER_GROUP_HEARTBEAT         1  1  1  1
CONSUMER_GROUP_DESCRIBE          1  1  1  1
GET_TELEMETRY_SUBSCRIPTIONS      0  0  0  0
PUSH_TELEMETRY                   0  0  0  0
LIST_CONFIG_RESOURCES            0  1  1  1
DESCRIBE_TOPIC_PARTITIONS        0  0  0  0
SHARE_GROUP_HEARTBEAT            - 1-1 1-1 1-1
SHARE_GROUP_DESCRIBE             - 1-1 1-1 1-1
SHARE_FETCH                      - 1-1 1-2 1-2
SHARE_ACKNOWLEDGE                - 1-1 1-2 1-2
INITIALIZE_SHARE_GROUP_STATE     -  0  0  0
READ_SHARE_GROUP_STATE           -  0  0  0
WRITE_SHARE_GROUP_STATE          -  0  1  1
DELETE_SHARE_GROUP_STATE         -  0  0  0
READ_SHARE_GROUP_STATE_SUMMARY   -  0  1  1
STREAMS_GROUP_HEARTBEAT          -  -  0  0
STREAMS_GROUP_DESCRIBE           -  -  0  0
DESCRIBE_SHARE_GROUP_OFFSETS     -  0  1  1
ALTER_SHARE_GROUP_OFFSETS        -  0  0  0
DELETE_SHARE_GROUP_OFFSETS       -  0  0  0
"""
