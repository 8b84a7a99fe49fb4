import os
import time

from confluent_kafka import Producer


def token(_config: str) -> tuple[str, float]:
    """A token and its end. Yours asks the issuer."""
    return os.environ["TOKEN"], time.time() + 300


failures = []
producer = Producer(
    {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token,
    }
)
producer.produce("logins", b"hello", on_delivery=lambda error, message: failures.append(error))
producer.flush(30)
print("delivered" if failures == [None] else f"failed: {failures}")
