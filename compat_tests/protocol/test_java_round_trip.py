"""Our bytes against Kafka's own message classes: what we write Java reads and writes again, byte for byte.

One JVM serves the whole module.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from compat_tests.protocol.kafka_messages import CHANGED_APIS, LATER_APIS, ask_java, ask_java_of, definitions
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import UnsupportedFieldError, decode, encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.schema import Message
from tests.wire.random_messages import message_classes, random_message

FULLNESS = [0.0, 0.3, 0.7, 0.7, 1.0, 1.0]


def versions() -> Iterator[tuple[type[Message], int]]:
    for message_class in message_classes():
        low, high = message_class.VERSIONS
        for version in range(low, high + 1):
            yield message_class, version


def java_class(message_class: type[Message], known: dict[str, list[dict[str, Any]]]) -> str:
    name: str = known[message_class.__name__][0]["javaClass"]
    return name


def test_java_reads_every_message_and_version_and_writes_the_same_bytes() -> None:
    known = definitions()
    cases = []
    for message_class, version in versions():
        random = Random(f"{message_class.__name__} {version}")
        for fullness in FULLNESS:
            message = random_message(message_class, version, random, fullness)
            cases.append((message_class, version, message, encode(message, version)))
    responses = ask_java(f"read {java_class(cls, known)} {version} {data.hex()}" for cls, version, _, data in cases)
    assert len(responses) == len(cases)
    wrong = [
        f"{message!r} version {version}\n ours {data.hex()}\n java {response}"
        for (_, version, message, data), response in zip(cases, responses, strict=True)
        if response != data.hex()
    ]
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:5])


def test_defaults_are_javas() -> None:
    """A message no one filled in is written as Java writes its own, or refused where Java refuses."""
    known = definitions()
    cases = list(versions())
    responses = ask_java(f"default {java_class(cls, known)} {version} -" for cls, version in cases)
    for (message_class, version), response in zip(cases, responses, strict=True):
        what = f"{message_class.__name__} version {version}: java says {response}"
        if response.startswith("error") and "UnsupportedVersionException" in response:
            try:
                encode(message_class(), version)
            except UnsupportedFieldError:
                continue
            raise AssertionError(what)
        assert encode(message_class(), version).hex() == response, what
        assert decode(message_class, bytes.fromhex(response), version) == message_class(), what


def test_header_versions_are_kafkas() -> None:
    cases = [
        (info, version)
        for info in API_INFO.values()
        for version in range(info.valid_versions[0], info.valid_versions[1] + 1)
    ]
    responses = ask_java(f"header {info.key.value} {version} -" for info, version in cases)
    for (info, version), response in zip(cases, responses, strict=True):
        ours = f"{info.request_header_version(version)} {info.response_header_version(version)}"
        assert ours == response, f"{info.name} version {version}"


def test_error_codes_and_api_keys_are_kafkas() -> None:
    errors, apis = ask_java_of("kafka-3.9.1", ["errors - - -", "apis - - -"])
    (later_apis,) = ask_java_of("kafka-4.3.1", ["apis - - -"])
    theirs = {name: int(code) for code, name in (pair.split() for pair in errors.split(","))}
    ours = {error.name: error.value for error in ErrorCode}
    assert theirs.items() <= ours.items()
    assert all(ours[name] > max(theirs.values()) for name in ours.keys() - theirs.keys())
    named, later = keys_and_versions(apis), keys_and_versions(later_apis)
    for key, info in API_INFO.items():
        name, oldest, newest = later[key] if key in LATER_APIS.keys() | CHANGED_APIS.keys() else named[key]
        assert (name, newest) == (ApiKey(key).name, info.valid_versions[1])
        assert info.valid_versions[0] in {oldest, *named.get(key, ())}


def keys_and_versions(apis: str) -> dict[int, tuple[str, int, int]]:
    return {int(key): (name, int(low), int(high)) for key, name, low, high in (a.split() for a in apis.split(","))}
