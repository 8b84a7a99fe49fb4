"""Byte for byte, but for zxids, times and the order of children, the responses are those of a real ZooKeeper 3.8.4."""

from __future__ import annotations

from collections.abc import Iterator

from tests.coordination.server.conversation import (
    ENDS,
    PING,
    STEPS,
    Exchange,
    Session,
    connect,
    conversation,
    difference,
    recorded,
    until_ping,
)
from tests.coordination.server.harness import Bench, Client


def exchange_of(client: Client) -> Exchange:
    return lambda request: until_ping(client.ask_raw(request, PING))


def ours() -> Iterator[Exchange]:
    bench = Bench()
    while True:
        client = bench.client()
        Session.of(client.ask_raw(connect())[0])
        yield exchange_of(client)


def test_the_responses_are_zookeepers() -> None:
    assert difference(conversation(ours()), recorded()) == {}


def test_the_recording_has_each_step_once() -> None:
    names = [step.name for step in (*STEPS, *ENDS)]
    assert list(recorded()) == names
