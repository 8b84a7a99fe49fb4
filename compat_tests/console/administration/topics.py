"""Topics: created, changed, with more partitions and fewer records, deleted, compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import ConfigResource
from playwright.sync_api import expect

from compat_tests.console.administration.administrator import (
    RECORDS,
    Administrator,
    Task,
    nothing,
    setting,
    the_topic,
    topic,
)
from compat_tests.console.administration.places import HOUR_MS, LONG_AGO_MS, Place
from compat_tests.console.conftest import START_S
from compat_tests.support import quick
from compat_tests.support.waiting import eventually


def partitions_of(place: Place, name: str) -> int:
    found = place.admin.list_topics(timeout=START_S).topics.get(name)
    return 0 if found is None or found.error else len(found.partitions)


def offsets_of(place: Place, name: str) -> list[tuple[int, int]]:
    """The first offset and the end of both partitions."""
    consumer = Consumer({"bootstrap.servers": place.bootstrap, "group.id": "offsets"})
    found = [consumer.get_watermark_offsets(TopicPartition(name, number), timeout=START_S) for number in (0, 1)]
    consumer.close()
    return found


def create_a_topic(who: Administrator, name: str) -> None:
    who.click("Topics")
    who.click("Create a topic")
    who.type("Topic", name)
    who.type("Partitions", "3")
    who.type("Replicas", "2")
    who.type("Settings", "retention.ms=3600000")
    who.enter("Topic")
    who.do(f"Create {name}")


def created(place: Place, name: str) -> Any:
    eventually(lambda: partitions_of(place, name) == 3, f"{name} has its partitions")
    return setting(place, ConfigResource.Type.TOPIC, name, "retention.ms"), len(place.replicas(name)[0])


def change_retention(who: Administrator, name: str) -> None:
    the_topic(who, name)
    who.click("Change a setting")
    who.type("Key", "retention.ms")
    who.type("Value", "7200000")
    who.enter("Value")
    who.do("Change retention.ms")


def retention(place: Place, name: str) -> Any:
    eventually(lambda: setting(place, ConfigResource.Type.TOPIC, name, "retention.ms") == "7200000", "the setting")
    return setting(place, ConfigResource.Type.TOPIC, name, "retention.ms")


def add_partitions(who: Administrator, name: str) -> None:
    the_topic(who, name)
    who.click("Add partitions")
    who.type("Partitions in all", "4")
    who.enter("Partitions in all")
    who.do("Add partitions")


def four_partitions(place: Place, name: str) -> Any:
    eventually(lambda: partitions_of(place, name) == 4, f"{name} has four partitions")
    return partitions_of(place, name)


def timed(place: Place) -> str:
    """A record an hour from long ago, in both partitions."""
    name = topic(place, 2)
    for number in (0, 1):
        stamps = [LONG_AGO_MS + hour * HOUR_MS for hour in range(RECORDS)]
        quick.fill(place.bootstrap, name, ["x"] * RECORDS, number, stamps)
    return name


def delete_records_up_to_a_time(who: Administrator, name: str) -> None:
    """The first three of each partition are before it: 2001-09-09T01:46:40Z is when they begin."""
    the_topic(who, name)
    who.click("Delete records")
    who.type("Up to", "@2001-09-09T04:00:00Z")
    who.enter("Up to")
    who.do("Delete these records", name)


def delete_a_topic(who: Administrator, name: str) -> None:
    the_topic(who, name)
    who.click("Delete the topic")
    who.do(f"Delete {name}", name)


def is_gone(place: Place, name: str) -> Any:
    eventually(lambda: partitions_of(place, name) == 0, f"{name} is gone")
    return partitions_of(place, name)


def compare_two_topics(who: Administrator, name: str) -> None:
    the_topic(who, name)
    who.click("Configuration", where="main")
    who.click("Compare with another topic")
    other = topic(who.place, retention_ms=1000)
    who.type("and topic", other)
    who.enter("and topic")
    row = who.page.locator("tbody tr", has_text="retention.ms").first
    expect(row).to_contain_text("differs")
    who.picture(who.page)


TASKS: Final[Mapping[str, Task]] = {
    "topic-create": Task(nothing, create_a_topic, created),
    "topic-setting": Task(topic, change_retention, retention),
    "topic-partitions": Task(topic, add_partitions, four_partitions),
    "topic-trim": Task(timed, delete_records_up_to_a_time, offsets_of),
    "topic-delete": Task(topic, delete_a_topic, is_gone),
    "topics-compared": Task(topic, compare_two_topics, None),
}
