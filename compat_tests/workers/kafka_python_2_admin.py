"""The KafkaAdminClient of kafka-python 2.2: one pass over what it can do, its results as one JSON line.

PYTHONPATH=<kafka-python 2.2.15> python kafka_python_2_admin.py BOOTSTRAP NAME
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.errors import KafkaError


def error_of(call: Any) -> str:
    try:
        call()
    except KafkaError as error:
        return type(error).__name__
    return "none"


def partitions(admin: KafkaAdminClient, topic: str) -> int:
    (described,) = admin.describe_topics([topic])
    return len(described["partitions"])


def config_value(admin: KafkaAdminClient, topic: str, key: str) -> str:
    (response,) = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {key: ""})])
    (resource,) = response.resources
    return str(resource[4][0][1])


def main(bootstrap: str, name: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(name, 2, 1, topic_configs={"segment.ms": "4242000"})])
    out["again"] = error_of(lambda: admin.create_topics([NewTopic(name, 2, 1)]))
    out["listed"] = name in admin.list_topics()
    out["partitions"] = partitions(admin, name)
    admin.create_partitions({name: NewPartitions(3)})
    out["segment"] = config_value(admin, name, "segment.ms")
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"segment.ms": "77000"})])
    cluster = admin.describe_cluster()
    out["brokers"] = [[node["node_id"], node["host"], node["port"]] for node in cluster["brokers"]]
    out["controller"] = cluster["controller_id"]
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for n in range(5):
        producer.send(name, str(n).encode(), partition=0)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=name, enable_auto_commit=False)
    part = TopicPartition(name, 0)
    consumer.assign([part])
    consumer.seek_to_beginning(part)
    read: list[str] = []
    while len(read) < 5:
        read += [record.value.decode() for records in consumer.poll(1000).values() for record in records]
    consumer.commit()
    consumer.close()
    out["read"] = read
    out["group listed"] = name in {group[0] for group in admin.list_consumer_groups()}
    (group,) = admin.describe_consumer_groups([name])
    out["group state"] = group.state
    offsets = admin.list_consumer_group_offsets(name)
    out["offsets"] = {f"{key.topic}-{key.partition}": value.offset for key, value in offsets.items()}
    deleted = admin.delete_records({part: 2})
    out["low watermark"] = deleted[part]["low_watermark"]
    log_dirs = admin.describe_log_dirs()
    out["log dirs"] = [entry[1] for entry in log_dirs.log_dirs]
    out["deleted groups"] = [[group_id, error.__name__] for group_id, error in admin.delete_consumer_groups([name])]
    out["partitions after"] = partitions(admin, name)
    out["segment after"] = config_value(admin, name, "segment.ms")
    admin.delete_topics([name])
    out["missing"] = error_of(lambda: admin.delete_topics([name + "-missing"]))
    admin.close()
    return out


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2])) + "\n")
