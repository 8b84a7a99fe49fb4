"""Reading again what was read before: from an offset, or from a time, without touching the group that reads live."""

from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition


def replay(settings: dict[str, Any], topic: str, since_ms: int) -> Iterator[Message]:
    """Every record of a topic with this timestamp or a later one, up to what was there at the begin of the call.

    `assign` instead of `subscribe`: no group is joined, and no offset is committed.
    """
    consumer = Consumer({**settings, "group.id": "replay", "enable.auto.commit": False, "enable.partition.eof": False})
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        wanted = [TopicPartition(topic, index, since_ms) for index in partitions]
        ends = {one.partition: consumer.get_watermark_offsets(one, 30)[1] for one in wanted}
        starts = [one for one in consumer.offsets_for_times(wanted, 30) if 0 <= one.offset < ends[one.partition]]
        consumer.assign(starts)
        pending = {one.partition for one in starts}
        while pending:
            message = consumer.poll(1)
            if message is None or message.error():
                continue
            index = message.partition()
            if index in pending:
                yield message
                if message.offset() + 1 >= ends[index]:
                    pending.discard(index)
    finally:
        consumer.close()
