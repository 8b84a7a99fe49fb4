"""Who may write: users, and ACLs that an admin makes."""

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from kpybroker.testing import Broker


def write(broker: Broker, user: str) -> str:
    """Write a record as this user; the error, or an empty text."""
    errors: list[str] = []
    producer = broker.producer(library="confluent-kafka", user=user)
    producer.produce("orders", user, on_delivery=lambda error, _: errors.append(error.name() if error else ""))
    producer.flush(30)
    return errors[0]


with Broker(topics=["orders"], tls=True, sasl="scram", acl=True) as broker:
    print("users:", ", ".join(broker.users))
    bob_writes = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:bob",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    admin = broker.admin(library="confluent-kafka")
    admin.create_acls([bob_writes])[bob_writes].result(30)
    print("alice:", write(broker, "alice"))
    print("bob:", write(broker, "bob") or "written")
    print("settings for Java:", broker.config("java", user="bob")["sasl.mechanism"])
