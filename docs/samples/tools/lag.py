"""The lag of a group: what it has not read of each partition of its topics, also of those that it never read."""

import sys

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

BOOTSTRAP, GROUP = "127.0.0.1:9092", "readers"

admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
committed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])[GROUP].result()
consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "lag-reader"})
offsets = {(place.topic, place.partition): place.offset for place in committed.topic_partitions}
for topic in sorted({topic for topic, _ in offsets}):
    for index in sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions):
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=10)
        sys.stdout.write(f"{topic}-{index}: {end - offsets.get((topic, index), start)} behind\n")
consumer.close()
