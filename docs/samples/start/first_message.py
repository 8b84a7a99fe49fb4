"""Write one record and read it back."""

from confluent_kafka import Consumer, Producer

BOOTSTRAP = "127.0.0.1:9092"

producer = Producer({"bootstrap.servers": BOOTSTRAP})
producer.produce("greetings", key="en", value="hello")
producer.flush()

consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "readers", "auto.offset.reset": "earliest"})
consumer.subscribe(["greetings"])
message = consumer.poll(30)
assert message is not None
print(message.topic(), message.offset(), message.value().decode())
consumer.close()
