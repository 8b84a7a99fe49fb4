"""The differences from Kafka 3.9.1 that are meant. Each has its reason, and stands in docs/reference/guarantees.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

MISSING = "<nothing>"
ANYTHING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two responses are not equal. `label` names the step with its API and version."""

    label: str
    api: ApiKey | None
    path: str
    kafka: Any
    ours: Any


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where it may differ: regular expressions over the whole path, label, script's name; and what either side says."""

    why: str
    path: str
    api: ApiKey | None = None
    label: str = ".*"
    scripts: str = ".*"
    kafka: Any = ANYTHING
    ours: Any = ANYTHING

    def covers(self, script: str, difference: Difference) -> bool:
        return (
            self.api in (None, difference.api)
            and self.kafka in (ANYTHING, difference.kafka)
            and self.ours in (ANYTHING, difference.ours)
            and re.fullmatch(self.path, difference.path) is not None
            and re.fullmatch(self.label, difference.label) is not None
            and re.fullmatch(self.scripts, script) is not None
        )


NOT_SERVED = "7|17|3[4689]|4[01356]|5[01678]|6[79]"
UNKNOWN_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)

ALLOWED: tuple[Allowed, ...] = (
    Allowed("what is not served is not advertised", f"api_keys\\.({NOT_SERVED})", ApiKey.API_VERSIONS, ours=MISSING),
    Allowed("served beyond Kafka 3.9", r"api_keys\.(74|75)", ApiKey.API_VERSIONS, kafka=MISSING),
    *(
        Allowed("says what is wrong, where Kafka has an unknown error", r".*error_message", api, kafka=None)
        for api in (ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS)
    ),
    *(
        Allowed(
            "says what is not there, where Kafka fails on a path that its tree cannot have",
            r"results.*error_(code|message)",
            api,
            scripts="odd-.*|create-partitions",
        )
        for api in (ApiKey.CREATE_PARTITIONS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
    ),
    *(
        Allowed(
            "cuts a text that is longer than a string, where Kafka has an unknown error",
            r".*error_(code|message)",
            api,
            scripts="odd-.*",
        )
        for api in (ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_CONFIGS)
    ),
    Allowed("refused, so that its clients do not wait", r"api_keys\.76", ApiKey.API_VERSIONS, kafka=MISSING),
    Allowed(
        "refused, so that its clients do not wait", r"api_keys\.68\.max_version", ApiKey.API_VERSIONS, kafka=0, ours=1
    ),
    Allowed("served beyond Kafka 3.9", r"api_keys\.15\.max_version", ApiKey.API_VERSIONS, kafka=5, ours=6),
    Allowed("served beyond Kafka 3.9", r"api_keys\.69\.max_version", ApiKey.API_VERSIONS, kafka=0, ours=1),
    Allowed("supported, and not finalized with ZooKeeper", r"supported_features.*", ApiKey.API_VERSIONS, kafka=MISSING),
    Allowed("all or nothing, as in Kafka 4", r"api_keys\.57\.max_version", ApiKey.API_VERSIONS, kafka=1, ours=2),
    Allowed("documentation is in our own words", r".*\.documentation", ApiKey.DESCRIBE_CONFIGS),
    Allowed(
        "the default text of an error code is in our own words",
        r".*error_message",
        kafka="This most likely occurs because of a request being malformed by the client library or the message was "
        "sent to an incompatible broker. See the broker logs for more details.",
    ),
    Allowed(
        "the default text of an error code is in our own words",
        r".*error_message",
        kafka="This server does not host this topic-partition.",
    ),
    Allowed(
        "the default text of an error code is in our own words",
        r".*error_message",
        kafka="No partition reassignment is in progress.",
        ours="The partition is not being reassigned.",
    ),
    Allowed(
        "the default text of an error code is in our own words",
        r".*error_message",
        kafka="Leader election not needed for topic partition.",
        ours="The partition needs no election.",
    ),
    Allowed(
        "the embedded tree needs no zookeeper.connect",
        r"results\[0\]\.configs\.zookeeper\.(connect|connection\.timeout\.ms)\..*",
        ApiKey.DESCRIBE_CONFIGS,
    ),
    Allowed(
        "a broker is not on the network unless configured: its default listener is the loopback",
        r"results\[0\]\.configs\.listeners\.synonyms\[1\]\.value",
        ApiKey.DESCRIBE_CONFIGS,
        kafka="PLAINTEXT://:9092",
        ours="PLAINTEXT://127.0.0.1:9092",
    ),
    Allowed(
        "Kafka promises the size before it converts and fills up with a part of a message, which clients drop",
        r"responses\[\d+\]\.partitions\[\d+\]\.records\[\d+\]",
        ApiKey.FETCH,
        label=r".* v[0-3]",
        ours=MISSING,
    ),
    Allowed(
        "and the size of that part follows from how well the batches' clock times compress",
        r"responses\[\d+\]\.partitions\[\d+\]\.records\[\d+\]\.cut-off bytes",
        ApiKey.FETCH,
        label=r".* v[0-3]",
        scripts="produce-append-time",
    ),
    Allowed(
        "Kafka stumbles over a batch that is shorter than its own header",
        r".*error_code",
        ApiKey.PRODUCE,
        scripts="produce-(damaged|old-magic-damaged)",
        kafka=UNKNOWN_ERROR,
        ours=int(ErrorCode.CORRUPT_MESSAGE),
    ),
    Allowed(
        "Kafka stumbles over a partition below 0",
        r"topics\[0\]\.error_(code|message)",
        ApiKey.CREATE_TOPICS,
        scripts="create-placed-topics",
        label="step 9: .*",
    ),
    Allowed(
        "Kafka stumbles over an election that there is not",
        r"(error_code|replica_election_results\[0\]\.partition_result\[0\]\.error_(code|message))",
        ApiKey.ELECT_LEADERS,
        scripts="elect-in-another-way",
    ),
    Allowed(
        "Kafka stumbles over zero cleaner threads (its message is '/ by zero')",
        r".*error_message",
        ApiKey.ALTER_CONFIGS,
        kafka="/ by zero",
    ),
    Allowed(
        "Kafka names the wrong broker",
        r".*error_message",
        kafka="Unexpected node id. Expected 0, but received 0",
        ours="Unexpected node id. Expected 0, but received 1",
    ),
    Allowed(
        "one result for a partition that a request names twice",
        r"topics\[0\]\.partitions\[1\]",
        ApiKey.OFFSET_COMMIT,
        scripts="commit-alone",
        label=".* v0",
        ours=MISSING,
    ),
    Allowed(
        "Kafka knows no code for an operation that there is not",
        r"responses\[0\]\.error_(code|message)",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        scripts="change-topic-configs",
        label="step 19: .*",
    ),
    Allowed(
        "listeners stay as they were bound: they are not dynamic here",
        r"responses\[0\]\.error_message",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        kafka="Error creating broker listeners from 'x': Unable to parse x to a broker endpoint",
    ),
    Allowed(
        "keys of our own",
        r"results\[0\]\.configs\.(kpybroker|kafka\.graphite)\..*",
        ApiKey.DESCRIBE_CONFIGS,
        kafka=MISSING,
    ),
    Allowed(
        "a string that is not UTF-8 is refused; Kafka puts other characters in its place",
        r"the broker|response",
        scripts="frames",
        label=r".*fffe",
    ),
    Allowed(
        "a batch of another epoch than the open transaction's is verified, as by Kafka 4",
        r".*\.(error_code|log_start_offset)",
        ApiKey.PRODUCE,
        scripts="txn-states-produce",
        label=r"step (2[345]|84): .*",
    ),
)
