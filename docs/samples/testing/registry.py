"""A schema registry next to a test's broker."""

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kpybroker.testing import Broker, SchemaRegistry

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'

with Broker(topics=["orders"]) as broker, SchemaRegistry(broker) as registry:
    client = SchemaRegistryClient({"url": registry.url})
    where = SerializationContext("orders", MessageField.VALUE)
    producer = broker.producer(library="confluent-kafka")
    producer.produce("orders", AvroSerializer(client, ORDER)({"id": 7}, where))
    producer.flush(30)
    (record,) = broker.records("orders")
    print(AvroDeserializer(client)(record.value, where))
    print(client.get_subjects())
