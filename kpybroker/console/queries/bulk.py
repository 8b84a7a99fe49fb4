"""Many messages at once, from JSON lines as a download has them. Nothing is sent before every line was read."""

from __future__ import annotations

from typing import Final, NamedTuple

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import usage
from kpybroker.client.records import json_lines
from kpybroker.client.records.json_lines import BadLine
from kpybroker.console.queries.produce import Message, produce_all

MESSAGES_MAX: Final = 20_000


class Sent(NamedTuple):
    """How many messages were acknowledged, and by partition the first and the last offset."""

    messages: int
    places: dict[int, tuple[int, int]]


def parse(topic: str, text: str, keep: bool) -> list[Message]:
    """The messages of the lines; with `keep` with their partition and time. Raises CommandError for a bad line."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json_lines.load(line.encode(errors="surrogatepass"))
        except BadLine as error:
            raise usage(
                f"line {number}: {error}", "write lines as a download of JSON lines has them; nothing was sent"
            ) from None
        place, at = (record.partition, record.timestamp_ms) if keep else (None, None)
        found.append(Message(topic, record.key, record.value, record.headers, place, at))
        if len(found) > MESSAGES_MAX:
            raise usage(f"there are more than {MESSAGES_MAX} lines", "send them with kpybroker topic produce -f json")
    if not found:
        raise usage("there is no line", "paste the lines of a download, or choose its file")
    return found


def send(cluster: Cluster, messages: list[Message]) -> Sent:
    """Produce them in order. Raises CommandError if one was not acknowledged; it says how many were."""
    places: dict[int, tuple[int, int]] = {}
    for partition, offset in produce_all(cluster, messages):
        first, last = places.get(partition, (offset, offset))
        places[partition] = (min(first, offset), max(last, offset))
    return Sent(len(messages), dict(sorted(places.items())))
