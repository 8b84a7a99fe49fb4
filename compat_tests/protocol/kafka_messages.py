"""Kafka's definitions and classes, out of its jars: what our specs and our codec are held against."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from compat_tests.deps import jars_dir
from compat_tests.support.tools import JARS, program_command
from protocol_specs.notation import parse_range

ROUND_TRIP = Path(__file__).with_name("RoundTrip.java")
VERSION_OF = {jars: version for version, jars in JARS.items()}
JAVA_SECONDS_MAX = 240

# jar, and the package of the classes generated from the definitions in it
_JARS = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
    "kafka-share-coordinator": "org.apache.kafka.coordinator.share.generated",
    "kafka-transaction-coordinator": "org.apache.kafka.coordinator.transaction.generated",
}

ONLY_IN_4 = ("kafka-share-coordinator",)

# APIs of which there is a version that Kafka 3.9 does not have: for that version Kafka 4.x is asked
LATER_APIS = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    15: "DescribeGroups",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    35: "DescribeLogDirs",
    45: "AlterPartitionReassignments",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    66: "ListTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    74: "ListConfigResources",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}
# APIs whose versions of 3.9 were for early access only, and which Kafka 4 has changed
CHANGED_APIS = {
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
}
# and records of which that is so
LATER_RECORDS = (
    "ConsumerGroupCurrentMemberAssignmentValue",
    "ConsumerGroupMetadataValue",
    "ConsumerGroupRegularExpressionKey",
    "ConsumerGroupRegularExpressionValue",
    "ConsumerGroupTargetAssignmentMetadataValue",
    "OffsetCommitValue",
    "ShareGroupCurrentMemberAssignmentKey",
    "ShareGroupCurrentMemberAssignmentValue",
    "ShareGroupMemberMetadataKey",
    "ShareGroupMemberMetadataValue",
    "ShareGroupMetadataKey",
    "ShareGroupMetadataValue",
    "ShareGroupStatePartitionMetadataKey",
    "ShareGroupStatePartitionMetadataValue",
    "ShareGroupTargetAssignmentMemberKey",
    "ShareGroupTargetAssignmentMemberValue",
    "ShareGroupTargetAssignmentMetadataKey",
    "ShareGroupTargetAssignmentMetadataValue",
    "ShareSnapshotKey",
    "ShareSnapshotValue",
    "ShareUpdateKey",
    "ShareUpdateValue",
    "StreamsGroupCurrentMemberAssignmentKey",
    "StreamsGroupCurrentMemberAssignmentValue",
    "StreamsGroupMemberMetadataKey",
    "StreamsGroupMemberMetadataValue",
    "StreamsGroupMetadataKey",
    "StreamsGroupMetadataValue",
    "StreamsGroupTargetAssignmentMemberKey",
    "StreamsGroupTargetAssignmentMemberValue",
    "StreamsGroupTargetAssignmentMetadataKey",
    "StreamsGroupTargetAssignmentMetadataValue",
    "StreamsGroupTopologyKey",
    "StreamsGroupTopologyValue",
    "TransactionLogValue",
)


def kafka_jars(name: str = "kafka-3.9.1") -> Path:
    """The directory with Kafka's jars, 3.9.1 unless named; says what to run when they are not there."""
    jars = jars_dir(name)
    if not any(jars.glob("kafka-clients-*.jar")):
        raise FileNotFoundError(f"no Kafka jars in {jars}: run `python compat_tests/deps.py jars`")
    return jars


def definitions() -> dict[str, list[dict[str, Any]]]:
    """The definitions of every message by name, as Kafka's JSON says them, with `javaClass` added.

    That of Kafka 3.9.1, and that of Kafka 4.3.1 for what is later; they have some versions in common.
    """
    found = {name: [definition] for name, definition in _definitions_in(kafka_jars()).items()}
    later = _definitions_in(kafka_jars("kafka-4.3.1"))
    for api in LATER_APIS.values():
        for name in (f"{api}Request", f"{api}Response"):
            found.setdefault(name, []).append(later[name])
    for api in CHANGED_APIS.values():
        for name in (f"{api}Request", f"{api}Response"):
            found[name] = [later[name]]
    return found | {name: [_as_in_3_9(later[name])] for name in LATER_RECORDS}


def _as_in_3_9(record: dict[str, Any]) -> dict[str, Any]:
    """Kafka 4 says the type of a record next to its key's version, which is always 0; before, it was that version."""
    record_type = str(record.pop("apiKey"))
    if record["type"] == "coordinator-key":
        record["validVersions"] = record_type
        record["fields"] = [field | {"versions": record_type} for field in record["fields"]]
    return record


def _definitions_in(jars: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for jar_name, package in _JARS.items():
        file = next(jars.glob(f"{jar_name}-[0-9]*.jar"), None)
        if file is None:
            assert jar_name in ONLY_IN_4, f"no {jar_name} in {jars}"
            continue
        with zipfile.ZipFile(file) as jar:
            for entry in jar.namelist():
                if entry.startswith("common/message/") and entry.endswith(".json"):
                    definition = _parse(jar.read(entry).decode())
                    name = definition["name"]
                    is_api = definition["type"] in ("request", "response")
                    definition["javaClass"] = f"{package}.{name}{'Data' if is_api else ''}"
                    found[name] = definition
    return found


def _parse(text: str) -> dict[str, Any]:
    """JSON with whole-line comments."""
    lines = (re.sub(r"^\s*//.*$", "", line) for line in text.splitlines())
    result: dict[str, Any] = json.loads("\n".join(lines))
    return result


def ask_java(commands: Iterable[str]) -> list[str]:
    """The responses of RoundTrip.java, one per command: of Kafka 4.x for what is later than 3.9.1, else of 3.9.1."""
    asked = list(commands)
    newest = _newest_in_3_9()
    later = [number for number, command in enumerate(asked) if _is_later(command, newest)]
    responses = dict(zip(later, ask_java_of("kafka-4.3.1", [_as_in_4(asked[at]) for at in later]), strict=True))
    rest = [number for number in range(len(asked)) if number not in responses]
    responses |= zip(rest, ask_java_of("kafka-3.9.1", [asked[number] for number in rest]), strict=True)
    return [responses[number] for number in range(len(asked))]


def _newest_in_3_9() -> dict[str, int]:
    """The newest version that Kafka 3.9.1 has, by API key and by Java class."""
    newest = {}
    for definition in _definitions_in(kafka_jars()).values():
        if definition.get("apiKey") in CHANGED_APIS:
            continue
        _, version = parse_range(definition["validVersions"])
        newest[definition["javaClass"]] = version
        if "apiKey" in definition:
            newest[str(definition["apiKey"])] = version
    return newest


def _is_later(command: str, newest: Mapping[str, int]) -> bool:
    _, subject, version, _ = command.split(" ")
    return subject.endswith(LATER_RECORDS) or subject not in newest or int(version) > newest[subject]


def _as_in_4(command: str) -> str:
    verb, subject, _, data = command.split(" ")
    return command if not subject.endswith("Key") else f"{verb} {subject} 0 {data}"


def ask_java_of(jars: str, commands: list[str]) -> list[str]:
    """`ask_java` of one Kafka version."""
    if not commands:
        return []
    done = subprocess.run(
        program_command(VERSION_OF[jars], ROUND_TRIP),
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        timeout=JAVA_SECONDS_MAX,
        check=True,
    )
    return done.stdout.splitlines()
