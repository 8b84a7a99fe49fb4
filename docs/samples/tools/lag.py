"""The lag of a group: records between its committed offsets and the end of each partition."""

import sys

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

BOOTSTRAP, GROUP = "127.0.0.1:9092", "readers"

admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
committed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])[GROUP].result()
consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "lag-reader"})
for place in committed.topic_partitions:
    _, end = consumer.get_watermark_offsets(place, timeout=10)
    sys.stdout.write(f"{place.topic}-{place.partition}: {end - place.offset} behind\n")
consumer.close()
