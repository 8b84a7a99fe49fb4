"""Write and read one record on a listener that requires a certificate."""

from confluent_kafka import Consumer, Producer

SETTINGS = {
    "bootstrap.servers": "127.0.0.1:9093",
    "security.protocol": "SSL",
    "ssl.ca.location": "certificates/ca.pem",
    # only where the broker asks for a certificate
    "ssl.certificate.location": "certificates/alice.crt",
    "ssl.key.location": "certificates/alice.key",
}

producer = Producer(SETTINGS)
producer.produce("letters", "sealed")
producer.flush()

consumer = Consumer({**SETTINGS, "group.id": "readers", "auto.offset.reset": "earliest"})
consumer.subscribe(["letters"])
message = consumer.poll(30)
assert message is not None
print(message.value().decode())
consumer.close()
