"""Which topics use a schema. Kafka knows of no schemas, so there are two signs, and each is shown as what it is:

- the name of the subject, as the strategies of serializers make it from a topic and the full name of a record;
- the ids in front of keys and values of records, of which the newest are looked at.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.partitions import Place, bounds, known
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.schemas.reading import number_of
from kpybroker.console.queries.messages import Reading
from kpybroker.console.queries.topics import find, places

TOPICS_MAX: Final = 20
PLACES_MAX: Final = 500
RECORDS_EACH: Final = 10
"""Of each partition."""
LOOK_S_MAX: Final = 4.0
SUFFIXES: Final = ("-value", "-key")
"""Of the subjects of a topic, by the usual strategy."""
PACKAGE: Final = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
MESSAGE: Final = re.compile(r"^\s*message\s+(\w+)", re.MULTILINE)


class Use(NamedTuple):
    """A topic that uses a schema by its subject's name, for which part of its records, and by which strategy."""

    topic: str
    part: str
    strategy: str
    is_there: bool


def record_name(kind: str, text: str) -> str:
    """The full name of the record that a schema is of: its name in Avro and Protobuf, the title in JSON Schema; empty
    where it has none.
    """
    if kind == "PROTOBUF":
        package, message = PACKAGE.search(text), MESSAGE.search(text)
        return ".".join(found[1] for found in (package, message) if found) if message else ""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(schema, dict):
        return ""
    if kind == "JSON":
        return str(schema.get("title") or "")
    name, namespace = str(schema.get("name") or ""), str(schema.get("namespace") or "")
    return name if "." in name or not namespace else f"{namespace}.{name}"


def by_name(subject: str, record: str, topics: Iterable[str]) -> list[Use]:
    """The topics that the subject's name is made of, as the strategies ``TopicNameStrategy`` and
    ``TopicRecordNameStrategy`` make it. That of ``RecordNameStrategy`` names none.
    """
    there = set(topics)
    for suffix in SUFFIXES:
        topic = subject.removesuffix(suffix)
        if topic != subject and topic:
            return [Use(topic, suffix[1:], "TopicNameStrategy", topic in there)]
    topic = subject.removesuffix(f"-{record}") if record else subject
    if topic != subject and topic:
        return [Use(topic, "key or value", "TopicRecordNameStrategy", topic in there)]
    return []


class Met(NamedTuple):
    """What was met in records: a row for each topic, part and version. `looked` of `topics` topics were looked into;
    `is_whole` says that all records that were to be read arrived in time.
    """

    rows: list[dict[str, Any]]
    looked: int
    topics: int
    records: int
    is_whole: bool


def met(cluster: Cluster, first: Sequence[str], versions: Mapping[int, int]) -> Met:
    """The ids of `versions` in the newest records of topics: of `first`, then of others by their names. Raises
    CommandError.
    """
    names = sorted(name for name in cluster.metadata().topics if not name.startswith("__"))
    chosen: list[Place] = []
    looked = 0
    for name in sorted(names, key=lambda one: (one not in first, one))[:TOPICS_MAX]:
        found = places(find(cluster, name))
        if len(chosen) + len(found) > PLACES_MAX:
            break
        chosen += found
        looked += 1
    edges = known(bounds(cluster, chosen, committed_only=True))
    span = {place: Bounds(max(one.start, one.end - RECORDS_EACH), one.end) for place, one in edges.items()}
    counts: dict[tuple[str, str, int], int] = {}
    with Reading(cluster.settings, "", span) as reading:
        records = reading.collect(len(span) * RECORDS_EACH, time.monotonic() + LOOK_S_MAX)
        is_whole = reading.is_done
    for record in records:
        for part, data in (("key", record.key), ("value", record.value)):
            number = number_of(data)
            if number is not None and number in versions:
                key = (str(record.topic), part, versions[number])
                counts[key] = counts.get(key, 0) + 1
    rows = [{"topic": t, "part": p, "version": v, "records": count} for (t, p, v), count in sorted(counts.items())]
    return Met(rows, looked, len(names), len(records), is_whole)
