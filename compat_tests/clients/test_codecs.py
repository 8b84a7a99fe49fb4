"""Every codec, written by each client and read by every other: the same keys, values and headers in the same order."""

from __future__ import annotations

import uuid

import pytest

from compat_tests.support.clients import CLIENTS, CODECS, Client
from compat_tests.support.quick import create_topic
from compat_tests.support.records import Record, make_records
from compat_tests.support.services import Broker

COUNT = 60
HEADERS = (("from", "compat"), ("n", "1"))


class Written:
    """One topic for each (codec, writer), written when a test first asks for it."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._run = uuid.uuid4().hex[:6]
        self._done: dict[tuple[str, str], list[Record] | Exception] = {}

    def topic(self, codec: str, writer: str) -> str:
        return f"codec-{codec}-{writer}-{self._run}"

    def records(self, codec: str, writer: str) -> list[Record]:
        """What is in the topic; a writer that failed fails every test that needs it, with its own words."""
        pair = (codec, writer)
        if pair not in self._done:
            try:
                self._done[pair] = self._write(codec, writer)
            except Exception as error:
                self._done[pair] = error
        outcome = self._done[pair]
        if isinstance(outcome, Exception):
            raise AssertionError(f"{writer} could not write {codec}: {outcome}") from outcome
        return outcome

    def _write(self, codec: str, writer: str) -> list[Record]:
        topic = self.topic(codec, writer)
        create_topic(self._bootstrap, topic)
        records = make_records(f"{codec} {writer}", COUNT, HEADERS)
        Client(writer, self._bootstrap).produce(topic, records, codec)
        return records


READERS = ("confluent", "java-4.x")
"""Those of `make test`: one in C, one in Java. Each codec is read as each client wrote it."""


@pytest.fixture(scope="module")
def written(broker: Broker) -> Written:
    return Written(broker.bootstrap)


@pytest.mark.parametrize("writer", CLIENTS)
@pytest.mark.parametrize("codec", CODECS)
def test_written(written: Written, codec: str, writer: str) -> None:
    assert written.records(codec, writer)


@pytest.mark.parametrize(
    "reader",
    [client if client in READERS else pytest.param(client, marks=pytest.mark.wide) for client in CLIENTS],
)
@pytest.mark.parametrize("codec", CODECS)
def test_read(broker: Broker, written: Written, codec: str, reader: str) -> None:
    expected = {writer: written.records(codec, writer) for writer in CLIENTS}
    topics = [written.topic(codec, writer) for writer in CLIENTS]
    seen = Client(reader, broker.bootstrap).consume(topics, COUNT * len(CLIENTS))
    for writer, records in expected.items():
        tag = f"{codec} {writer} "
        mine = [record for record in seen if record.value is not None and record.value.startswith(tag)]
        assert mine == records, f"{reader} read what {writer} wrote"
        assert [record.offset for record in mine] == list(range(COUNT))
    assert len(seen) == COUNT * len(CLIENTS)
