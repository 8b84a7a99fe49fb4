"""An order with a schema, written and read: the schema is registered by the serializer and found by its id."""

import sys

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

BOOTSTRAP, REGISTRY, TOPIC = "127.0.0.1:9092", "http://127.0.0.1:8081", "orders"
SCHEMA = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "note", "type": "string", "default": ""}
]}"""

registry = SchemaRegistryClient({"url": REGISTRY})
value = SerializationContext(TOPIC, MessageField.VALUE)

producer = Producer({"bootstrap.servers": BOOTSTRAP})
producer.produce(TOPIC, AvroSerializer(registry, SCHEMA)({"id": 7, "note": "in a hurry"}, value))
producer.flush()

consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "readers", "auto.offset.reset": "earliest"})
consumer.subscribe([TOPIC])
while (message := consumer.poll(1)) is None or message.error():
    pass
sys.stdout.write(f"{AvroDeserializer(registry)(message.value(), value)}\n")
consumer.close()
