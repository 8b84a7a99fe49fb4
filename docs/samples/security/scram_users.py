"""Create a user, log in as that user, and remove it."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)


def settings(user: str, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "certificates/ca.pem",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
    }


admin = AdminClient(settings("alice", "alice-secret"))
info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
admin.alter_user_scram_credentials([UserScramCredentialUpsertion("carol", info, b"carol-secret")])["carol"].result(30)

topics = AdminClient(settings("carol", "carol-secret")).list_topics(timeout=30)
print("carol is logged in at cluster", topics.cluster_id)

admin.alter_user_scram_credentials([UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)])[
    "carol"
].result(30)
try:
    AdminClient(settings("carol", "carol-secret")).list_topics(timeout=3)
except KafkaException:
    print("carol is gone")
