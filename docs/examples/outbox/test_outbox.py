"""No event is lost, whatever Kafka does at the same time, and none is sent for a change that did not happen."""

import sqlite3

import pytest
from outbox import deposit, open_database, relay


@pytest.fixture
def database(tmp_path):
    database = open_database(str(tmp_path / "accounts.sqlite"))
    yield database
    database.close()


def events(broker, topic):
    return [(record.key_text, int(record.text)) for record in broker.records(topic)]


def test_events_are_sent_in_order(database, kafka_broker, kafka_topic):
    for amount in (5, 7, -3):
        deposit(database, "ann", amount)
    assert relay(database, kafka_broker.config("confluent-kafka"), kafka_topic) == 3
    assert events(kafka_broker, kafka_topic) == [("ann", 5), ("ann", 7), ("ann", -3)]
    assert relay(database, kafka_broker.config("confluent-kafka"), kafka_topic) == 0


def test_a_change_that_fails_has_no_event(database, kafka_broker, kafka_topic):
    with pytest.raises(sqlite3.IntegrityError):
        deposit(database, "ann", -1)
    assert relay(database, kafka_broker.config("confluent-kafka"), kafka_topic) == 0


def test_an_event_that_kafka_refuses_stays_in_the_outbox(database, kafka_broker, kafka_topic, kafka_faults):
    deposit(database, "ann", 5)
    refused = kafka_faults.error("Produce", "TOPIC_AUTHORIZATION_FAILED", topic=kafka_topic)
    with refused, pytest.raises(RuntimeError):
        relay(database, kafka_broker.config("confluent-kafka"), kafka_topic)
    assert events(kafka_broker, kafka_topic) == []
    assert relay(database, kafka_broker.config("confluent-kafka"), kafka_topic) == 1
    assert events(kafka_broker, kafka_topic) == [("ann", 5)]
