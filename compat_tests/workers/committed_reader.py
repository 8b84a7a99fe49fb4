"""Reads committed records of partition 0 with one Python client library, and prints their values as JSON.

    python committed_reader.py LIBRARY BOOTSTRAP TOPIC COUNT

It goes on reading for a while after COUNT records, so that one too many is seen as well.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

DEADLINE_S = 180.0
AFTERWARDS_S = 1.0


def confluent(bootstrap: str, topic: str, count: int) -> list[str]:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": "none", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "check.crcs": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        message = consumer.poll(AFTERWARDS_S)
        if message is not None:
            assert message.error() is None, message.error()
            values.append(message.value().decode())
        elif len(values) >= count:
            break
    consumer.close()
    return values


def kafka_python(bootstrap: str, topic: str, count: int) -> list[str]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed", check_crcs=True)
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    values: list[str] = []
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = consumer.poll(timeout_ms=int(AFTERWARDS_S * 1000)).get(place, [])
        values += [record.value.decode() for record in found]
        if not found and len(values) >= count:
            break
    consumer.close()
    return values


def aiokafka(bootstrap: str, topic: str, count: int) -> list[str]:
    async def read() -> list[str]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        await consumer.start()
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        values: list[str] = []
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            found = (await consumer.getmany(place, timeout_ms=int(AFTERWARDS_S * 1000))).get(place, [])
            values += [record.value.decode() for record in found]
            if not found and len(values) >= count:
                break
        await consumer.stop()
        return values

    return asyncio.run(read())


LIBRARIES = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}


if __name__ == "__main__":
    library, bootstrap, topic, count = sys.argv[1:]
    print(json.dumps(LIBRARIES[library](bootstrap, topic, int(count))))
