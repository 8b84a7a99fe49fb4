"""Chaos that repeats: faults by a seed, and a clock that the test moves."""

import pytest
from confluent_kafka import Producer

COUNT = 200


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_idempotent_producer_survives_a_bad_network(kafka_broker, kafka_topic, kafka_faults, seed):
    bad = {"topic": kafka_topic, "probability": 0.2, "seed": seed}
    kafka_faults.disconnect("Produce", "after", **bad)
    kafka_faults.error("Produce", "NOT_ENOUGH_REPLICAS", **bad)
    kafka_faults.delay("Produce", 5, jitter_ms=10, **bad)
    fast = {"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 50, "retry_backoff_ms": 10}
    producer = Producer(kafka_broker.config("confluent-kafka", enable_idempotence=True, batch_num_messages=5, **fast))
    for number in range(COUNT):
        producer.produce(kafka_topic, str(number))
        producer.poll(0.001)
    assert producer.flush(60) == 0
    assert [int(record.text) for record in kafka_broker.records(kafka_topic)] == list(range(COUNT))
    assert sum(fault.hits for fault in kafka_faults.all()) > 0


def test_records_expire_after_their_retention(kafka_broker, kafka_clock):
    kafka_broker.create_topic("sessions", config={"retention.ms": 24 * 3_600_000})
    kafka_broker.produce("sessions", ["yesterday"])
    kafka_clock.advance(hours=23)
    kafka_broker.apply_retention("sessions")
    assert [record.text for record in kafka_broker.records("sessions")] == ["yesterday"]
    kafka_clock.advance(hours=2)
    kafka_broker.apply_retention("sessions")
    assert kafka_broker.records("sessions") == []


def test_a_member_that_hangs_is_replaced(kafka_broker, kafka_topic, group_id, kafka_faults, kafka_clock):
    hung = kafka_broker.consumer(group_id, kafka_topic, client_id="hung")
    hung.poll(1)
    kafka_broker.wait_assigned(group_id, kafka_topic, members=1)
    fault = kafka_faults.blackhole(client_id="hung")
    fault.wait(1)
    kafka_clock.advance(minutes=6)
    healthy = kafka_broker.consumer(group_id, kafka_topic, client_id="healthy")
    healthy.poll(1)
    group = kafka_broker.wait_assigned(group_id, kafka_topic, members=1)
    assert [member.client_id for member in group.members] == ["healthy"]
    kafka_faults.clear()
    healthy.close()
    hung.close()
