"""Kafka Streams with exactly_once_v2 while the broker and the application die: all said once, and nothing else.

A join with a table, a join of two streams, a repartition and a windowed count, their changelogs and their offsets:
every step is in a transaction. Without a cache each click makes one visit and each pair one step of a count, so what
was done twice is seen. A table changes only when all that went before was joined, so that one result is right.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.conftest import StartBroker
from compat_tests.eos.readers import messages_to_end
from compat_tests.eos.transaction_log import newest_at, used
from compat_tests.streams.application import CLASSIC, STREAMS, Application
from compat_tests.streams.groups import streams_broker
from compat_tests.streams.recount import USERS, Event, count, join, make_events, visit
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

PARTITIONS = 3
TOPICS = ("plans", "known", "clicks", "visits", "buys", "pairs", "counts")
ROUNDS, EVENTS_AT_ONCE, SPAN_MS = 3, 100, 300_000
TRIES_MAX = 50
ISOLATIONS = ("committed", "uncommitted")
TOGETHER_MS, WINDOW_MS = 2_000, 10_000
DEADLINE_S = 240.0


def shop_application(jars: str, broker: Broker, directory: Path, protocol: str) -> Application:
    arguments = (broker.bootstrap, "shop", str(directory / "state"), str(TOGETHER_MS), str(WINDOW_MS), protocol)
    return Application(jars, "Shop.java", directory, arguments)


def write(broker: Broker, topic: str, events: Sequence[Event]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **quick.QUIET})
    for event in events:
        producer.produce(topic, event.value.encode(), event.user.encode(), timestamp=event.time_ms)
    assert producer.flush(quick.DEADLINE_S) == 0


def written(broker: Broker, topic: str, isolation: str = "read_committed") -> list[tuple[str, str]]:
    """Keys and values, in order within each partition."""
    found = messages_to_end(broker.bootstrap, topic, range(PARTITIONS), isolation)
    return [(m.key().decode(), m.value().decode()) for messages in found.values() for m in messages]


def has(broker: Broker, application: Application, topic: str, expected: int) -> None:
    """Wait until so many records are committed there, or more."""

    def enough() -> bool:
        found = len(written(broker, topic))
        assert found >= expected, f"{found} of {expected} in {topic}; the application said:\n{application.said()}"
        return True

    eventually(enough, f"{expected} records in {topic}", DEADLINE_S)


class Shop:
    """The scenario, and what it has to come to."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._random = Random(7)
        self._first_ms = int(time.time() * 1000) - 3_600_000
        self._plans: dict[str, str] = {}
        self.known: list[tuple[str, str]] = []
        self.visits: list[Event] = []
        self.buys: list[Event] = []

    def change_plans(self) -> None:
        """The last user gets his first plan in the last round."""
        number = len(self.known) // (len(USERS) - 1)
        members = USERS if number == ROUNDS - 1 else USERS[:-1]
        changes = [Event(user, self._first_ms, f"plan-{number}") for user in members]
        write(self._broker, "plans", changes)
        self._plans |= {change.user: change.value for change in changes}
        self.known += [(change.user, change.value) for change in changes]

    def click(self) -> None:
        clicks = make_events(f"click-{len(self.visits)}", EVENTS_AT_ONCE, self._first_ms, SPAN_MS, self._random)
        write(self._broker, "clicks", clicks)
        self.visits += visit(clicks, self._plans)

    def buy(self) -> None:
        buys = make_events(f"buy-{len(self.buys)}", EVENTS_AT_ONCE, self._first_ms, SPAN_MS, self._random)
        write(self._broker, "buys", buys)
        self.buys += buys

    def pairs(self) -> list[Event]:
        return join(self.visits, self.buys, TOGETHER_MS)


def is_in_transaction(broker: Broker) -> bool:
    """Whether something is written that is not committed: the last stable offset is before the end."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "none", **quick.QUIET}
    committed, uncommitted = (Consumer({**settings, "isolation.level": f"read_{one}"}) for one in ISOLATIONS)
    places = [TopicPartition("visits", partition) for partition in range(PARTITIONS)]
    try:
        return any(
            committed.get_watermark_offsets(place, quick.DEADLINE_S)[1]
            < uncommitted.get_watermark_offsets(place, quick.DEADLINE_S)[1]
            for place in places
        )
    finally:
        committed.close()
        uncommitted.close()


def freeze_in_transaction(shop: Shop, broker: Broker, application: Application) -> None:
    """Have it work until it is stopped with a transaction open."""
    for _ in range(TRIES_MAX):
        shop.buy()
        shop.click()
        application.freeze()
        if is_in_transaction(broker):
            return
        application.thaw()
    raise AssertionError(f"it was never caught in a transaction:\n{application.said()}")


@pytest.mark.parametrize(
    ("jars", "protocol"),
    [
        pytest.param("streams-3.9.1", CLASSIC, marks=pytest.mark.wide),
        ("streams-4.3.1", CLASSIC),
        pytest.param("streams-4.3.1", STREAMS, marks=pytest.mark.wide),
    ],
)
def test_joined_and_counted_once(own_broker: StartBroker, tmp_path: Path, jars: str, protocol: str) -> None:
    keys = {"transaction_state_log_num_partitions": "4", "offsets_topic_num_partitions": "4"}
    broker = streams_broker(own_broker, **keys) if protocol == STREAMS else own_broker(**keys)
    for topic in TOPICS:
        quick.create_topic(broker.bootstrap, topic, PARTITIONS)
    shop = Shop(broker)
    application = shop_application(jars, broker, tmp_path, protocol)
    try:
        for end in ("broker killed", "application killed", "broker restarted"):
            shop.change_plans()
            has(broker, application, "known", len(shop.known))
            freeze_in_transaction(shop, broker, application)
            if end == "broker killed":
                broker.kill()
                broker.start()
            elif end == "broker restarted":
                broker.restart()
            else:
                application.kill()
                application.start()
            application.thaw()
            has(broker, application, "visits", len(shop.visits))
        pairs = shop.pairs()
        has(broker, application, "counts", len(pairs))
        application.close()
    finally:
        application.kill()
    assert used(broker.bootstrap) == {newest_at(broker.bootstrap) if "4.3.1" in jars else 0}
    assert Counter(written(broker, "known")) == Counter(shop.known)
    visits = Counter((one.user, one.value) for one in shop.visits)
    assert Counter(written(broker, "visits")) == visits
    assert len(written(broker, "visits", "read_uncommitted")) > visits.total(), "the killed transaction left nothing"
    assert Counter(written(broker, "pairs")) == Counter((pair.user, pair.value) for pair in pairs)
    steps: dict[str, list[int]] = defaultdict(list)
    for key, number in written(broker, "counts"):
        steps[key].append(int(number))
    assert steps == {key: list(range(1, last + 1)) for key, last in count(pairs, WINDOW_MS).items()}
