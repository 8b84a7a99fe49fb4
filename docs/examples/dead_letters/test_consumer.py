"""Good records are handled, bad ones are in the dead-letter topic with their reason, and nothing is skipped."""

import pytest
from consumer import Service


@pytest.fixture
def serve(kafka_broker, kafka_topic, group_id):
    services = []

    def start(handle):
        services.append(Service(kafka_broker.config("confluent-kafka"), group_id, kafka_topic, handle))
        return services[-1]

    yield start
    for service in services:
        service.close()


def drain(service, broker, group, topic, count):
    def all_committed():
        service.serve_one(0.2)
        return broker.committed(group).get(topic, {}).get(0) == count

    broker.wait_for(all_committed, timeout=30, what=f"{count} records committed")


def test_a_bad_record_does_not_stop_the_others(kafka_broker, kafka_topic, group_id, serve):
    kafka_broker.produce(kafka_topic, ["1", "not json", "-2", "3"])
    handled = []

    def handle(number):
        if number < 0:
            raise ValueError("negative")
        handled.append(number)

    drain(serve(handle), kafka_broker, group_id, kafka_topic, 4)
    assert handled == [1, 3]
    first, second = kafka_broker.records(f"{kafka_topic}.dead")
    assert (first.text, dict(first.headers)["from"]) == ("not json", f"{kafka_topic}-0@1".encode())
    assert (second.text, dict(second.headers)["reason"]) == ("-2", b"ValueError: negative")


def test_what_fails_for_a_while_is_tried_again(kafka_broker, kafka_topic, group_id, serve):
    kafka_broker.produce(kafka_topic, ["1"])
    tries = []

    def handle(number):
        tries.append(number)
        if len(tries) < 3:
            raise ConnectionError("the database is away")

    drain(serve(handle), kafka_broker, group_id, kafka_topic, 1)
    assert len(tries) == 3
    assert f"{kafka_topic}.dead" not in kafka_broker.topics()
