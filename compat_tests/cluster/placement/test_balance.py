"""`kpybroker cluster balance --copy --execute`: leaders spread by what is written, next to a producer that goes on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka import Message, Producer

from compat_tests.support import quick
from compat_tests.support.cluster import CHANGE_DEADLINE_S, Cluster
from compat_tests.support.command_line import CommandLine
from compat_tests.support.security.logins import reach

WEIGHTS = (3, 1, 1, 1)
"""Records in each round, by partition."""
ROUNDS_BEFORE = 3


@contextmanager
def written_to(cluster: Cluster, topic: str, weights: Sequence[int]) -> Iterator[Counter[int | None]]:
    """Rounds of records, one after the other; yields what is acknowledged so far, by partition."""
    acknowledged: Counter[int | None] = Counter()
    failures: list[str] = []
    producer = Producer({**reach(cluster.bootstrap), **quick.QUIET})
    ends = threading.Event()

    def report(error: object, message: Message) -> None:
        if error is None:
            acknowledged[message.partition()] += 1
        else:
            failures.append(str(error))

    def write() -> None:
        while not ends.is_set():
            for partition, weight in enumerate(weights):
                for _ in range(weight):
                    producer.produce(topic, bytes(1000), partition=partition, on_delivery=report)
            producer.flush(CHANGE_DEADLINE_S)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield acknowledged
    finally:
        ends.set()
        writer.join()
    assert not failures


@pytest.mark.wide
def test_a_hot_topic_spreads_by_load_and_what_is_idle_stays(cluster: Cluster, name: str) -> None:
    hot, idle = f"{name}-hot", f"{name}-idle"
    cluster.create(hot, "1,1,1,1")
    cluster.create(idle, "1,1,1")
    with written_to(cluster, hot, WEIGHTS) as acknowledged:
        cluster.wait(lambda: acknowledged[0] >= ROUNDS_BEFORE * WEIGHTS[0], "the producer writes")
        command = CommandLine(cluster.bootstrap)
        said = command.json("cluster", "balance", "--seconds", "5", "--copy", "--execute")
        leaders = [cluster.state(hot, number).leader for number in range(len(WEIGHTS))]
        at_the_change = acknowledged.total()
        cluster.wait(lambda: acknowledged.total() > at_the_change, "the producer has found the new leaders")
    assert {(row["topic"], row["status"], row["error"]) for row in said["changes"]} == {(hot, "changed", None)}
    assert {row["partition"]: row["to"] for row in said["changes"]} == {
        number: leader for number, leader in enumerate(leaders) if leader != 1
    }
    heavy, *light = leaders
    assert heavy not in light, "the partition with half of the load has a broker of its own"
    assert sorted(Counter(light).values()) == [1, 2]
    assert {cluster.state(idle, number).leader for number in range(3)} == {1}
    for number in range(len(WEIGHTS)):
        assert cluster.replicas(hot, number) == [leaders[number]]
        quick.read(cluster.bootstrap, [(hot, number)], acknowledged[number])
