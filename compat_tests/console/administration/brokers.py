"""Brokers, where replicas are and which of them leads, and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, NewTopic
from playwright.sync_api import expect

from compat_tests.console.administration.administrator import Administrator, Task, new_name, setting, topic
from compat_tests.console.administration.places import Place
from compat_tests.console.conftest import START_S
from compat_tests.support import quick
from compat_tests.support.waiting import eventually

PARTS: Final = 30
PART_BYTES: Final = 50_000
SLOW: Final = 10_000
"""Bytes a second: a megabyte is fetched at once, and then nothing for the eleven seconds that a broker looks back."""

_brokers: Final[dict[str, list[int]]] = {}


def broker(place: Place) -> str:
    """Each time another one."""
    left = _brokers.setdefault(place.address, sorted(place.admin.list_topics(timeout=START_S).brokers))
    return str(left.pop(0))


def change_a_broker(who: Administrator, name: str) -> None:
    who.click(name, where="main tbody")
    who.click("Change log.cleaner.threads")
    who.type("Value", "2")
    who.enter("Value")
    who.do("Change log.cleaner.threads")


def cleaners(place: Place, name: str) -> Any:
    eventually(lambda: setting(place, ConfigResource.Type.BROKER, name, "log.cleaner.threads") == "2", "the setting")
    return setting(place, ConfigResource.Type.BROKER, name, "log.cleaner.threads")


def off_balance(place: Place) -> str:
    """A topic that its second replica leads."""
    name = topic(place, 1, 2)
    replicas, leader = place.replicas(name)
    place.reassign(name, [one for one in replicas if one != leader] + [leader])
    return name


def elect_leaders(who: Administrator, name: str) -> None:
    who.click("Replication")
    who.click("Elect preferred leaders")
    expect(who.page.get_by_role("row", name=name).first).to_contain_text("would be elected")
    who.do("Elect these leaders")


def is_balanced(place: Place, name: str) -> Any:
    def balanced() -> bool:
        replicas, leader = place.replicas(name)
        return replicas[0] == leader

    eventually(balanced, f"the first replica leads {name}")
    return True


def heavy(place: Place) -> str:
    """A topic with a megabyte, on one broker."""
    name, admin = new_name(), place.admin
    at = max(admin.list_topics(timeout=START_S).brokers)
    admin.create_topics([NewTopic(name, 1, replica_assignment=[[at]])])[name].result()
    producer = Producer({"bootstrap.servers": place.bootstrap})
    for _ in range(PARTS):
        producer.produce(name, b"x" * PART_BYTES, partition=0)
    producer.flush()
    return name


def elsewhere(place: Place, name: str) -> int:
    ((now,), _) = place.replicas(name)
    others: list[int] = [one for one in place.admin.list_topics(timeout=START_S).brokers if one != now]
    return min(others)


def move_and_follow(who: Administrator, name: str) -> None:
    to = elsewhere(who.place, name)
    who.click("Replication")
    who.click("Move partitions")
    who.type("Topics and partitions", name)
    who.type("To the brokers", str(to))
    who.type("Bytes a second, at most", str(SLOW))
    who.enter("To the brokers")
    who.do("Move these partitions")
    who.click("See what it is now")
    moves = who.page.get_by_role("region", name="Moves under way")
    expect(moves).to_contain_text(f"{name}-0")
    expect(moves.get_by_role("row", name=name)).to_have_count(0)
    assert who.place.replicas(name)[0] == [to]


def moved(place: Place, name: str) -> Any:
    """Whether it was moved once, and how many limits it has until they are removed."""
    eventually(lambda: place.cli.json("partition", "moves") == [], "no move is under way")
    return len(place.replicas(name)[0]), setting(
        place, ConfigResource.Type.TOPIC, name, "leader.replication.throttled.replicas"
    )


def limited(place: Place) -> str:
    """A topic with a limit of a move that has ended."""
    name = topic(place)
    key = "leader.replication.throttled.replicas"
    place.cli.run("config", "set", "topic", name, f"{key}=0:0")
    return name


def remove_limits(who: Administrator, name: str) -> None:
    who.click("Replication")
    who.click("Remove limits")
    expect(who.page.get_by_role("row", name=name).first).to_contain_text("would be removed")
    who.do("Remove these limits")


def limits(place: Place, name: str) -> Any:
    key = "leader.replication.throttled.replicas"
    eventually(lambda: not setting(place, ConfigResource.Type.TOPIC, name, key), "no limit")
    return setting(place, ConfigResource.Type.TOPIC, name, key)


# --- transactions


def hanging(place: Place) -> str:
    """A topic with a transaction that no coordinator knows, and a record behind it."""
    name = topic(place)
    place.write_hanging(name)
    quick.fill(place.bootstrap, name, ["held back"])
    assert place.cli.run("topic", "consume", name, "-e").lines == []
    return name


def abort_a_hanging_transaction(who: Administrator, name: str) -> None:
    who.click("Transactions")
    who.click("Look for hanging ones")
    row = who.page.get_by_role("region", name="Transactions that hang").get_by_role("row", name=name)
    expect(row).to_contain_text("years")
    who.clicks += 1
    row.get_by_role("link", name="Abort").click()
    who.do("Abort it", name)


def readable(place: Place, name: str) -> Any:
    return place.cli.run("topic", "consume", name, "-e").lines


_producers: Final[list[Producer]] = []
"""With transactions that are open."""


def opened(place: Place) -> str:
    """A transaction that is open, of a transactional id and a topic of this name."""
    name = topic(place)
    producer = Producer({"bootstrap.servers": place.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(START_S)
    producer.begin_transaction()
    producer.produce(name, b"pending", partition=0)
    producer.flush()
    _producers.append(producer)
    return name


def abort_a_transaction(who: Administrator, name: str) -> None:
    who.click("Transactions")
    who.clicks += 1
    who.page.get_by_role("row", name=name).get_by_role("link", name="Abort").click()
    who.do("Abort it", name)


def state_of(place: Place, name: str) -> Any:
    def state() -> str:
        found: str = place.cli.json("transaction", "describe", name)[0]["state"]
        return found

    eventually(lambda: state() not in ("Ongoing", "PrepareAbort", "PrepareEpochFence"), "the transaction has ended")
    return place.cli.run("topic", "consume", name, "-e").lines


TASKS: Final[Mapping[str, Task]] = {
    "broker-setting": Task(broker, change_a_broker, cleaners),
    "elect": Task(off_balance, elect_leaders, is_balanced),
    "move": Task(heavy, move_and_follow, moved),
    "throttle-end": Task(limited, remove_limits, limits),
    "transaction-hanging": Task(hanging, abort_a_hanging_transaction, readable),
    "transaction-abort": Task(opened, abort_a_transaction, state_of),
}
