"""Messages are followed as they arrive, without a gap over a lost connection, by a bounded number of browsers."""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kpybroker.console.web.follow import FOLLOWERS_MAX
from kpybroker.testing import Broker


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"f-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, ["before"])
    return name


def opened(served: str, topic: str, query: str = "", **headers: str) -> Any:
    request = urllib.request.Request(f"{served}/topics/{topic}/follow?{query}", headers=headers)
    return urllib.request.urlopen(request, timeout=120)


def events(stream: Any) -> Iterator[tuple[str, str, str]]:
    """(id, event, data) of each event; comments are left out."""
    fields: dict[str, str] = {}
    for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "event" in fields:
            yield fields.get("id", ""), fields["event"], json.loads(fields["data"])
            fields = {}


def test_what_arrives_is_followed_and_nothing_is_lost_in_between(served: str, broker: Broker, topic: str) -> None:
    with opened(served, topic, "value=v") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline() == b": following\n"
        broker.produce(topic, ["v1", "other", "<v2>"])
        first, second = (next(events(stream)) for _ in range(2))
        assert "v1" in first[2]
        assert "&lt;v2&gt;" in second[2]
    broker.produce(topic, ["v3"])
    with opened(served, topic, **{"Last-Event-ID": second[0]}) as stream:
        broker.produce(topic, ["v4"])
        assert ["v3" in next(events(stream))[2], "v4" in next(events(stream))[2]] == [True, True]


def test_followers_are_bounded_and_give_way(served: str, broker: Broker, topic: str) -> None:
    with ExitStack() as stack:
        for _ in range(FOLLOWERS_MAX):
            stack.enter_context(opened(served, topic)).readline()
        with opened(served, topic) as refused:
            assert "follow messages already" in next(events(refused))[2]
