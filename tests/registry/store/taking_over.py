"""What another registry is asked to write into `_schemas`, and what must be said of it by the one that goes on.

`python -m tests.registry.store.taking_over URL BOOTSTRAP TOPIC` asks an empty registry of Confluent at URL, and writes
down the records of its topic and its responses: facts, so that no test needs it.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).parent
FILE: Final = HERE / "confluent_8_1_0_topic.xz"
TABLES: Final = {
    "AVRO": HERE.parent / "schemas" / "confluent_8_1_0_avro.jsonl",
    "JSON": HERE.parent / "schemas" / "confluent_8_1_0_json.jsonl",
    "PROTOBUF": HERE.parent / "schemas" / "proto" / "confluent_8_1_0_protobuf.jsonl",
}
OF_EACH_TYPE: Final = 200
OF_A_SUBJECT: Final = 4
NORMALIZED_EACH: Final = 10
SENT_MAX: Final = 20_000

Ask = Callable[[str, str, Any], tuple[int, Any]]
"""A method, a path, and a body as JSON or None; the status and the JSON of the response."""


class Step(NamedTuple):
    """A request that changes something."""

    method: str
    path: str
    body: Any = None

    @property
    def registers(self) -> bool:
        """Whether it registers a schema of a subject."""
        return self.path.startswith("/subjects/") and self.path.partition("?")[0].endswith("/versions")


class Topic(NamedTuple):
    """What a registry wrote, and said."""

    records: list[tuple[str, str | None, int]]
    """Keys, values and times, in the order of the log."""
    responses: list[tuple[int, Any]]
    """To the steps."""
    picture: list[Any]
    """To the questions of `PICTURE`, at the end."""


PICTURE: Final = (
    "/subjects?subjectPrefix=:*:",
    "/subjects?subjectPrefix=:*:&deleted=true",
    "/schemas?subjectPrefix=:*:",
    "/schemas?subjectPrefix=:*:&deleted=true",
    "/contexts",
    "/config",
    "/mode",
    "/config/plain",
    "/config/:.staging:",
    "/config/aliased",
    "/mode/read-only",
    "/mode/:.staging:",
    "/mode/plain?defaultToGlobal=true",
    "/config/removed?defaultToGlobal=true",
    "/subjects/target/versions/1/referencedby",
    "/subjects/soft/versions?deleted=true",
    "/subjects/soft/versions",
    "/subjects/plain/versions?deleted=true",
    "/subjects/aliased/versions/latest",
    "/subjects/:.staging:a/versions/1",
    "/schemas/ids/1",
    "/schemas/ids/100",
    "/schemas/ids/500",
    "/schemas/ids/5000",
    "/schemas/ids/1?subject=:.staging:",
    "/schemas/ids/90001?subject=:.import:",
)


def texts(kind: str) -> Iterator[str]:
    """Those that the reference takes, each another schema also where numbers count by value."""
    seen: set[str] = set()
    for line in TABLES[kind].read_text(encoding="utf-8").splitlines():
        sent, stored, normalized = json.loads(line)
        if stored is None or normalized is None or not sent.strip() or len(sent) > SENT_MAX:
            continue
        forms = {stored, normalized}
        if kind == "JSON":
            forms.add(json.dumps(json.loads(stored), sort_keys=True))
        if not forms & seen:
            yield sent
        seen |= forms
    if kind == "JSON":
        yield from (
            f'{{"title":"T{number}", "properties": {{"a": {{"maximum":{number}.50}}}}}}' for number in range(50)
        )


def steps() -> Iterator[Step]:
    """Everything that is asked."""
    yield Step("PUT", "/config", {"compatibility": "NONE"})
    for kind in TABLES:
        for number, text in enumerate(islice(texts(kind), OF_EACH_TYPE)):
            path = f"/subjects/{kind.lower()}-{number // OF_A_SUBJECT}/versions"
            normalized = "" if number % NORMALIZED_EACH else "?normalize=true"
            yield Step("POST", path + normalized, {"schema": text, "schemaType": kind})
    yield from _settings()
    yield from _deletions()
    yield from _attachments()


def _settings() -> Iterator[Step]:
    yield Step("POST", "/subjects/plain/versions", {"schema": '"int"'})
    yield Step("PUT", "/config/plain", {"compatibility": "FULL_TRANSITIVE", "normalize": True, "alias": ""})
    yield Step("PUT", "/config/aliased", {"alias": "plain"})
    yield Step("PUT", "/config/removed", {"compatibility": "FULL"})
    yield Step("DELETE", "/config/removed")
    yield Step("PUT", "/config/plain", {"compatibility": "BACKWARD", "compatibilityGroup": "g"})
    yield Step("POST", "/subjects/read-only/versions", {"schema": '"long"'})
    yield Step("PUT", "/mode/read-only", {"mode": "READONLY"})
    yield Step("PUT", "/mode/removed", {"mode": "READONLY"})
    yield Step("DELETE", "/mode/removed")
    yield Step("POST", "/subjects/:.staging:a/versions", {"schema": '"int"'})
    yield Step("POST", "/subjects/:.staging:b/versions", {"schema": '"long"'})
    yield Step("PUT", "/config/:.staging:", {"compatibility": "FORWARD"})
    yield Step("PUT", "/mode/:.staging:", {"mode": "READONLY"})
    yield Step("PUT", "/mode/:.import:", {"mode": "IMPORT"})
    yield Step("POST", "/subjects/:.import:a/versions", {"schema": '"bytes"', "id": 90001, "version": 7})


def _deletions() -> Iterator[Step]:
    for number in range(4):
        yield Step("POST", "/subjects/soft/versions", {"schema": f'{{"type":"fixed","name":"F","size":{number}}}'})
    yield Step("DELETE", "/subjects/soft/versions/2")
    yield Step("DELETE", "/subjects/soft/versions/3")
    yield Step("DELETE", "/subjects/soft/versions/3?permanent=true")
    yield Step("POST", "/subjects/soft/versions", {"schema": '{"type":"fixed","name":"F","size":1}'})
    yield Step("DELETE", "/subjects/soft/versions/4")
    for subject in ("gone", "whole"):
        yield Step("POST", f"/subjects/{subject}/versions", {"schema": '"float"'})
        yield Step("DELETE", f"/subjects/{subject}")
    yield Step("DELETE", "/subjects/gone?permanent=true")


def _attachments() -> Iterator[Step]:
    address = '{"type":"record","name":"Address","fields":[{"name":"city","type":"string"}]}'
    home = '{"type":"record","name":"Home","fields":[{"name":"at","type":"Address"}]}'
    reference = {"name": "Address", "subject": "target", "version": 1}
    yield Step("POST", "/subjects/target/versions", {"schema": address})
    yield Step("POST", "/subjects/home/versions", {"schema": home, "references": [reference]})
    metadata = {"properties": {"owner": "shop"}, "tags": {"**.city": ["PII"]}, "sensitive": ["owner"]}
    yield Step("POST", "/subjects/owned/versions", {"schema": '"int"', "metadata": metadata})
    yield Step("POST", "/subjects/owned/versions", {"schema": '"string"'})
    yield Step(
        "POST",
        "/subjects/caf%C3%A9%20%22x%22/versions",
        {"schema": '{"type":"enum","name":"U","symbols":["A"],"doc":"\u20ac\U0001f600"}'},
    )


def asked(ask: Ask) -> list[tuple[int, Any]]:
    """The responses to the steps."""
    return [ask(*step) for step in steps()]


def pictured(ask: Ask) -> list[Any]:
    """The responses to `PICTURE`.

    No order is promised for lists of schemas and subjects, nor which of several subjects with an id is named.
    """
    return [_comparable(path, ask("GET", path, None)[1]) for path in PICTURE]


def _comparable(path: str, value: Any) -> Any:
    if path.startswith("/schemas/ids/"):
        return {name: one for name, one in value.items() if name not in ("subject", "version", "ts")}
    return sorted(value, key=json.dumps) if isinstance(value, list) else value


def again(topic: Topic) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Registrations of versions that are there, with what was said of each."""
    there = {(one["subject"], one["version"]) for one in topic.picture[2]}
    for step, (_, body) in zip(steps(), topic.responses, strict=True):
        subject = step.path.removeprefix("/subjects/").partition("/")[0]
        if step.registers and (subject, body["version"]) in there and subject.rpartition("-")[0].upper() in TABLES:
            yield step, body


def recorded() -> Topic:
    """What Confluent's registry wrote and said."""
    found = json.loads(lzma.decompress(FILE.read_bytes()))
    return Topic(
        [(key, value, at) for key, value, at in found["records"]],
        [(status, body) for status, body in found["responses"]],
        found["picture"],
    )


def record(topic: Topic) -> None:
    """Write the file."""
    FILE.write_bytes(lzma.compress(json.dumps(topic._asdict()).encode()))


if __name__ == "__main__":
    from compat_tests.registry.topics import http, records_of

    ask = http(sys.argv[1])
    responses = asked(ask)
    record(Topic(records_of(*sys.argv[2:4]), responses, pictured(ask)))
