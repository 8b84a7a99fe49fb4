"""Allow alice to write to topics that begin with `app-`, from anywhere, and to nothing else."""

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)


def settings(user: str) -> dict[str, str]:
    return {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
    }


def write(topic: str) -> None:
    """As alice."""

    def done(error: KafkaError | None, _message: object) -> None:
        print(f"{topic}: {'written' if error is None else error.name()}")

    producer = Producer({**settings("alice"), "message.timeout.ms": 10000})
    producer.produce(topic, b"hello", on_delivery=done)
    producer.flush()


write("app-1")

admin = AdminClient(settings("admin"))
prefix = (ResourceType.TOPIC, "app-", ResourcePatternType.PREFIXED, "User:alice", "*")
allowed = [
    AclBinding(*prefix, operation, AclPermissionType.ALLOW) for operation in (AclOperation.WRITE, AclOperation.CREATE)
]
for future in admin.create_acls(allowed).values():
    future.result(30)

write("app-1")
write("other")

everything = AclBindingFilter(*prefix, AclOperation.ANY, AclPermissionType.ANY)
removed = admin.delete_acls([everything])[everything].result(30)
print(f"removed {len(removed)} ACLs")
