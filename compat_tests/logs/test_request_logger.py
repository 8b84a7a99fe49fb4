"""The request log next to Kafka's: the same tools against Kafka 3.9.1 and kpybroker, both with the logger at DEBUG."""

from __future__ import annotations

import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.conftest import Launcher
from compat_tests.deps import jars_dir
from compat_tests.support.services import AS_KAFKA_3_9, Broker
from compat_tests.support.tools import Tools
from kpybroker.broker.requests.log.kafka_json import kafka_name
from kpybroker.wire.api import API_INFO
from kpybroker.wire.schema import Message, struct_fields

COMPLETED = re.compile(r"^\[.{23}\] DEBUG Completed request:(.*) \(kafka.request.logger\)$", re.MULTILINE)
KINDS = ("kafka", "kpybroker")
APIS = {
    "API_VERSIONS",
    "CREATE_TOPICS",
    "FETCH",
    "FIND_COORDINATOR",
    "INCREMENTAL_ALTER_CONFIGS",
    "INIT_PRODUCER_ID",
    "JOIN_GROUP",
    "METADATA",
    "OFFSET_COMMIT",
    "PRODUCE",
    "SYNC_GROUP",
}
"""At least these are compared."""
OURS = {"requestSizeBytes", "responseSizeBytes"}
SOMETIMES = {
    "temporaryMemoryBytes",
    "messageConversionsTime",
    "requestHeader.requestApiVersionDeprecated",
}


@pytest.fixture(scope="module")
def lines(launcher: Launcher) -> dict[str, list[dict[str, Any]]]:
    """What each kind of broker logs for the same load."""
    found = {}
    for kind in KINDS:
        zookeeper = launcher.zookeeper(f"request-log-{kind}") if kind == "kafka" else None
        keys = {} if kind == "kafka" else AS_KAFKA_3_9
        broker = Broker(kind, launcher.directory / f"request-log-{kind}", zookeeper, keys)
        try:
            broker.start()
            put_load_on(broker)
            text = broker.service.output()
        finally:
            broker.service.kill()
        found[kind] = [json.loads(match[1]) for match in COMPLETED.finditer(text)]
        if kind == "kafka":  # which responds to the change of the level with the log on
            assert found[kind].pop(0)["request"] == ""
    return found


def put_load_on(broker: Broker) -> None:
    tools = Tools("3.9.1", broker.bootstrap)
    logger = ("--entity-type", "broker-loggers", "--entity-name", "0", "--alter")
    tools.run("configs", *logger, "--add-config", "kafka.request.logger=DEBUG")
    tools.run("topics", "--create", "--topic", "orders", "--config", "retention.ms=600000")
    topic = ("--entity-type", "topics", "--entity-name", "orders", "--alter")
    tools.run("configs", *topic, "--add-config", "retention.ms=700000")
    tools.run("console-producer", "--topic", "orders", stdin="not for the log\n" * 3)
    reading = ("--topic", "orders", "--group", "readers", "--from-beginning", "--max-messages", "3")
    assert "not for the log" in tools.run("console-consumer", *reading).out
    tools.run("configs", *logger, "--delete-config", "kafka.request.logger")


def paths(value: Any, prefix: str = "") -> Iterator[str]:
    """The names of all members, those of elements without a number."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{prefix}{name}"
            yield from paths(member, f"{prefix}{name}.")
    elif isinstance(value, list):
        for element in value:
            yield from paths(element, prefix)


def shapes(lines: list[dict[str, Any]]) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for line in lines:
        header = line["requestHeader"]
        found[header["requestApiKeyName"], header["requestApiVersion"]] |= set(paths(line)) - OURS - SOMETIMES
    return found


def test_lines_have_the_members_of_kafkas(lines: dict[str, list[dict[str, Any]]]) -> None:
    kafkas, ours = (shapes(lines[kind]) for kind in KINDS)
    both = kafkas.keys() & ours.keys()
    assert {name for name, _ in both} >= APIS
    different = {key: sorted(kafkas[key] ^ ours[key]) for key in both if kafkas[key] != ours[key]}
    assert not different


def test_values_of_a_request_are_those_of_kafkas(lines: dict[str, list[dict[str, Any]]]) -> None:
    for name in ("CREATE_TOPICS", "INCREMENTAL_ALTER_CONFIGS", "FIND_COORDINATOR"):
        kafkas, ours = (
            next(line["request"] for line in lines[kind] if line["requestHeader"]["requestApiKeyName"] == name)
            for kind in KINDS
        )
        assert kafkas.pop("timeoutMs", 0) // 10_000 == ours.pop("timeoutMs", 0) // 10_000  # what was left of 30 s
        assert kafkas == ours
    types = {kind: {name: type(value) for name, value in lines[kind][-1].items() if name not in OURS} for kind in KINDS}
    assert types["kafka"] == types["kpybroker"]


def test_names_of_all_fields_are_in_kafkas_converters() -> None:
    converters = bytes_of_converters()
    for info in API_INFO.values():
        for message_class in (info.request_class(), info.response_class()):
            data = converters[message_class.__name__]
            for struct in (message_class, *structs(message_class)):
                for field in struct_fields(message_class, None if struct is message_class else struct):
                    expected = kafka_name(field.name) + ("SizeInBytes" if field.type_name == "records" else "")
                    assert expected.encode() in data, (struct, field.name)


def bytes_of_converters() -> dict[str, bytes]:
    """The constants of the converters of each message, of 3.9.1 and of the newest Kafka, which has newer fields."""
    found: dict[str, bytes] = defaultdict(bytes)
    for version in ("3.9.1", "4.3.1"):
        with zipfile.ZipFile(jars_dir(f"kafka-{version}") / f"kafka-clients-{version}.jar") as jar:
            for entry in jar.namelist():
                if match := re.fullmatch(r"org/apache/kafka/common/message/(\w+)DataJsonConverter.*\.class", entry):
                    found[match[1]] += jar.read(entry)
    return found


def structs(message_class: type[Message]) -> Iterator[type[Message]]:
    for value in vars(message_class).values():
        if isinstance(value, type) and issubclass(value, Message):
            yield value
