"""Kafka's own replication matrix (``replication_test.py`` of its system tests), cell by cell.

{clean, hard} x {shutdown, five bounces} x {leader, controller, follower} x what the producer asks for. The producers of
a row write side by side, each into its own topic: idempotent with acks=all, plain with acks=all, plain with acks=1.

Two rows always run; `--replication-matrix` (`make replication-matrix`) runs all twelve.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import pytest

from compat_tests.cluster.traffic import Writer, verify, wait_for_equal_logs
from compat_tests.support.cluster import Cluster

BOUNCES = 5
SOME = 100


class Row(NamedTuple):
    mode: str
    course: str
    victim: str


MODES, COURSES, VICTIMS = ("clean", "hard"), ("shutdown", "bounces"), ("leader", "controller", "follower")
ROWS = [Row(*row) for row in itertools.product(MODES, COURSES, VICTIMS)]
SLICE = [Row("hard", "shutdown", "controller"), Row("clean", "bounces", "leader")]
"""`make test` plays the first."""

PRODUCERS: dict[str, dict[str, Any]] = {
    "idempotent": {"enable_idempotence": True, "acks": "all"},
    "all": {"enable_idempotence": False, "acks": "all"},
    "one": {"enable_idempotence": False, "acks": 1},
}


def _wide(row: Row) -> Any:
    return pytest.param(row, marks=pytest.mark.wide)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "row" in metafunc.fixturenames:
        rows = ROWS if metafunc.config.getoption("--replication-matrix") else [SLICE[0], *map(_wide, SLICE[1:])]
        metafunc.parametrize("row", rows, ids="-".join)


def test_what_is_acknowledged_stays(cluster: Cluster, name: str, row: Row) -> None:
    first = next(i for i in cluster.brokers if i != cluster.controller())
    order = [first, *(i for i in cluster.brokers if i != first)]
    writers = {}
    for producer, config in PRODUCERS.items():
        topic = f"{name}-{producer}"
        cluster.create(topic, ":".join(map(str, order)), "--config", "min.insync.replicas=2")
        writers[producer] = Writer(cluster.bootstrap, topic, 1, **config)
    for writer in writers.values():
        writer.start()
    wait_for_more(writers)
    for _ in range(1 if row.course == "shutdown" else BOUNCES):
        strike(cluster, row, f"{name}-idempotent")
        wait_for_more(writers)
    for writer in writers.values():
        writer.stop()
    for producer, writer in writers.items():
        # What the leader alone has acknowledged may die with it.
        is_lossless = producer != "one" or row.victim == "follower"
        verify(cluster.bootstrap, writer, is_lossless=is_lossless, is_exact=producer == "idempotent")
        running = [broker for broker in cluster.brokers.values() if broker.service.running]
        wait_for_equal_logs(running, writer.topic, 0)


def wait_for_more(writers: dict[str, Writer]) -> None:
    for writer in writers.values():
        writer.wait_for_more(SOME)


def strike(cluster: Cluster, row: Row, topic: str) -> None:
    """Stop or kill who plays the part now, and start it again unless that was all."""
    cluster.wait(lambda: cluster.controller() is not None and cluster.state(topic).leader > 0, "a controller, a leader")
    leader, controller = cluster.state(topic).leader, cluster.controller()
    follower = next(i for i in cluster.brokers if i not in (leader, controller))
    victim = cluster.brokers[{"leader": leader, "controller": controller or 0, "follower": follower}[row.victim]]
    if row.mode == "clean":
        victim.stop()
    else:
        victim.kill()
    if row.course == "bounces":
        victim.start()
