"""A replay sees what was written since a time, and leaves the live group's offsets alone."""

import pytest
from replay import replay

DAY_MS = 24 * 3_600_000


@pytest.mark.kafka(partitions=3)
def test_the_last_day_is_read_again(kafka_broker, kafka_topic, group_id, kafka_clock):
    kafka_broker.produce(kafka_topic, [f"old-{number}" for number in range(9)])
    kafka_clock.advance(days=2)
    kafka_broker.produce(kafka_topic, [f"new-{number}" for number in range(9)])
    reader = kafka_broker.consumer(group_id, kafka_topic)
    live = [reader.poll(10).value() for _ in range(18)]
    reader.commit(asynchronous=False)
    committed = kafka_broker.committed(group_id)

    since_ms = int(kafka_clock.now().timestamp() * 1000) - DAY_MS
    found = [message.value() for message in replay(kafka_broker.config("confluent-kafka"), kafka_topic, since_ms)]

    assert sorted(found) == sorted(value for value in live if value.startswith(b"new"))
    assert kafka_broker.committed(group_id) == committed
    reader.close()
