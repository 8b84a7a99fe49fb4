"""What the broker says of the topics that are read, asked by the Java client that Spark's connector brings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.errors import NO_CONNECTOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEADLINE_MS = 30_000
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def topic_ids(spark: SparkSession, client: Mapping[str, str], topics: Sequence[str]) -> dict[str, str]:
    """The id of each topic, empty where the broker has none.

    Raises `PipelineError` without a connector, and Py4JJavaError where a topic does not exist or may not be described.
    """
    jvm: Any = spark._jvm
    admin = _admin(jvm, client)
    try:
        found = admin.describeTopics(jvm.java.util.ArrayList(list(topics))).allTopicNames().get()
        ids = {topic: str(found[topic].topicId().toString()) for topic in topics}
    finally:
        admin.close()
    return {topic: "" if topic_id == NO_ID else topic_id for topic, topic_id in ids.items()}


def partition_counts(spark: SparkSession, client: Mapping[str, str], topics: Sequence[str]) -> dict[str, int]:
    """How many partitions each topic has. Raises Py4JJavaError."""
    jvm: Any = spark._jvm
    admin = _admin(jvm, client)
    try:
        found = admin.describeTopics(jvm.java.util.ArrayList(list(topics))).allTopicNames().get()
        return {topic: int(found[topic].partitions().size()) for topic in topics}
    finally:
        admin.close()


def create_compacted(spark: SparkSession, client: Mapping[str, str], topics: Collection[str]) -> None:
    """Make those of `topics` that are missing, compacted, with the broker's usual partitions and replicas.

    A broker that makes a topic when it is first written would let its records expire. Raises Py4JJavaError.
    """
    jvm: Any = spark._jvm
    admin = _admin(jvm, client)
    try:
        there = set(admin.listTopics().names().get())
        usual = jvm.java.util.Optional.empty()
        compacted = jvm.java.util.HashMap({"cleanup.policy": "compact"})
        wanted = [
            jvm.org.apache.kafka.clients.admin.NewTopic(topic, usual, usual).configs(compacted)
            for topic in sorted(set(topics) - there)
        ]
        admin.createTopics(jvm.java.util.ArrayList(wanted)).all().get()
    finally:
        admin.close()


def _admin(jvm: Any, client: Mapping[str, str]) -> Any:
    settings = jvm.java.util.Properties()
    for key, value in {**client, "default.api.timeout.ms": str(DEADLINE_MS)}.items():
        settings.setProperty(key, value)
    try:
        return jvm.org.apache.kafka.clients.admin.Admin.create(settings)
    except TypeError:  # py4j's, for a class that is not there
        raise NO_CONNECTOR from None
