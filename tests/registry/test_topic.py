"""The topic itself, on a broker: made where it is missing, refused where it is another, and its limits."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.registry.errors import RegistryError
from kpybroker.registry.rules import register
from kpybroker.registry.rules.change import Change
from kpybroker.registry.rules.library import Library
from kpybroker.registry.service import Service
from kpybroker.registry.store.log import TopicLog, ensure_topic
from kpybroker.registry.store.state import State
from kpybroker.testing import Broker
from tests.registry.conftest import Direct, Leader, finished

START_S = 180.0


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    with Broker(topics={"wide": 3, "plain": 1}, start_timeout=START_S) as broker:
        yield Settings(broker.bootstrap_servers, {}, START_S, "the test")


def opened(settings: Settings, topic: str) -> tuple[Service, TopicLog]:
    service = Service(lambda: "", Direct())
    log = TopicLog(settings, topic, service.apply, service.lock)
    service.attach(log, Leader())
    log.start()
    return service, log


def written(service: Service, subject: str, schema: str) -> int:
    body = {"schema": schema}

    def plan(state: State, library: Library) -> Change:
        return register.plan(state, library, subject, body, normalize=False, force=False)

    return int(finished(service, lambda: service.write(plan))["id"])


POISON = (  # no record without a key: a broker refuses those in a compacted topic
    (b"{", b"{}"),
    (b"\xff\xfe", None),
    (b'{"keytype":"FUTURE","magic":7}', b'{"x":1}'),
    (b'{"keytype":"SCHEMA","subject":"p","version":1,"magic":1}', b'{"subject":"p","version":1,"id":5,"sch'),
    (
        b'{"keytype":"SCHEMA","subject":"p","version":1,"magic":1}',
        b'{"subject":"p","version":1e999,"id":5,"schema":""}',
    ),
    (b'{"keytype":"CONFIG","subject":7,"magic":0}', b'{"compatibilityLevel":"NONE"}'),
    (b'{"keytype":"CONFIG","magic":0}', b"[]"),
    (b"[" * 100_000, b"[" * 100_000),
)


def test_a_record_that_cannot_be_read_is_logged_and_those_after_it_count(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    service, log = opened(settings, "_schemas-poison")
    assert written(service, "a", '"int"') == 1
    producer = Producer({"bootstrap.servers": settings.bootstrap})
    failed: list[object] = []
    for key, value in POISON:
        producer.produce("_schemas-poison", value, key, 0, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(START_S) == 0
    assert failed == [None] * len(POISON)
    assert written(service, "b", '"long"') == 2, "the instance that runs goes on"
    log.close()
    skipped = [message for message in caplog.messages if message.startswith("a record was skipped")]
    assert len(skipped) == len(POISON)
    assert all("offset=" in message and "cause=" in message and len(message) < 400 for message in skipped)
    again, again_log = opened(settings, "_schemas-poison")
    assert again.read(lambda state, _: (state.subjects(), state.skipped)) == (["a", "b"], len(POISON))
    assert written(again, "c", '"string"') == 3
    again_log.close()


def test_a_topic_that_cannot_hold_schemas_is_refused_with_what_to_do(settings: Settings) -> None:
    refusals = (("wide", "3 partitions", "--topic"), ("plain", "not compacted", "cleanup.policy=compact"))
    for topic, cause, fix in refusals:
        with pytest.raises(CommandError) as caught:
            ensure_topic(settings, topic)
        assert cause in caught.value.cause
        assert fix in caught.value.fix


def test_what_was_written_is_read_by_another_instance(settings: Settings) -> None:
    service, log = opened(settings, "_schemas")
    other, other_log = opened(settings, "_schemas")
    assert written(service, "a", '"int"') == 1
    other_log.refresh()
    assert other.read(lambda state, _: state.subjects()) == ["a"]
    assert written(other, "b", '"int"') == 1
    assert written(service, "c", '"long"') == 2, "it has read b before it planned"
    assert service.read(lambda state, _: state.subjects()) == ["a", "b", "c"]
    log.close()
    other_log.close()
    again, again_log = opened(settings, "_schemas")
    assert again.read(lambda state, _: (state.subjects(), state.id_max())) == (["a", "b", "c"], 2)
    again_log.close()


def test_a_schema_that_is_too_large_is_refused_and_the_next_one_written(settings: Settings) -> None:
    service, log = opened(settings, "large")
    large = json.dumps({"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(200_000)]})
    with pytest.raises(RegistryError) as caught:
        written(service, "a", large)
    assert caught.value.code == 42209
    assert written(service, "a", '"int"') == 1
    log.close()
