"""Three brokers and ZooKeeper with ten thousand partitions of three replicas: the controller is killed, all restart."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from compat_tests.bench.measuring.brokers import pinned, stock_zookeeper
from compat_tests.bench.measuring.costs import come_to_rest, cpu_seconds
from compat_tests.bench.ten_thousand import asked
from compat_tests.bench.ten_thousand.scene import Bound, Figures, Place, Scene
from compat_tests.overload.raw import Raw
from compat_tests.support.cluster import Cluster
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

BROKERS, REPLICAS = 3, 3
KILLED = "all led again after the controller's session ended"
SETTINGS = {"replica.lag.time.max.ms": "30000", "log.segment.delete.delay.ms": "1000"}
KILLED_CPU = "processor time of both that are left"
BOUNDS = (
    Bound(KILLED, "s", most=3.0),
    Bound(KILLED_CPU, "s"),
    Bound("whole again after its start", "s"),
    Bound("rolling restart", "s"),
)


def scenes(quick: bool) -> list[Scene]:
    sizes = (20, 100) if quick else (100, 1000, 10_000)
    return [Scene("partitions of three brokers", sizes, BOUNDS, failover, room_gb=3.0)]


def failover(place: Place) -> Figures:
    """Brokers and ZooKeeper have all cores: in a cluster each has a machine of its own."""
    directory = Path(place.directory)
    directory.mkdir(parents=True, exist_ok=True)
    cores = (*place.cores.broker, *place.cores.client)
    zookeeper = stock_zookeeper(directory / "zookeeper", cores)
    zookeeper.start()
    cluster = Cluster(directory / "cluster", f"{zookeeper.connect}/{place.kind}", [place.kind] * BROKERS, SETTINGS)
    for broker in cluster.brokers.values():
        broker.service.command[:0] = pinned(cores, [])
    try:
        cluster.start()
        with asked.connection(next(iter(cluster.brokers.values()))) as raw:
            asked.create(raw, asked.topic_names(place.size), REPLICAS)
        _wait_until_whole(cluster, place.size)
        figures = _kill_the_controller(cluster, place.size)
        figures["whole again after its start"] = asked.seconds_of(_heal, cluster, place.size)
        figures["rolling restart"] = asked.seconds_of(_roll, cluster, place.size)
        return figures
    finally:
        cluster.close()
        zookeeper.stop()


def _kill_the_controller(cluster: Cluster, partitions: int) -> dict[str, float]:
    """Until another broker says that a broker that lives leads each of them."""
    controller = cluster.controller()
    victim = cluster.brokers[controller or 1]
    successor = next(broker for number, broker in cluster.brokers.items() if number != controller)
    left = [broker.service.pid for broker in cluster.brokers.values() if broker is not victim]
    with asked.connection(successor) as raw:
        come_to_rest(left)
        cpu_before = sum(map(cpu_seconds, left))
        victim.kill()  # and its session is ended
        begin = time.perf_counter()
        for name, count in asked.topic_names(partitions):
            eventually(partial(_is_led, raw, name, count), "all are led again", asked.DEADLINE_S)
        seconds = time.perf_counter() - begin
    return {KILLED: seconds, KILLED_CPU: sum(map(cpu_seconds, left)) - cpu_before}


def _is_led(raw: Raw, name: str, partitions: int) -> bool:
    """Asked of one topic at a time: to ask for all of them takes as much of the brokers' core as the elections do."""
    return len(asked.metadata(raw, name).brokers) < BROKERS and asked.led(raw, name) == partitions


def _heal(cluster: Cluster, partitions: int) -> None:
    cluster.heal()
    _wait_until_whole(cluster, partitions)


def _roll(cluster: Cluster, partitions: int) -> None:
    for broker in cluster.brokers.values():
        broker.stop()
        broker.start()
        _wait_until_whole(cluster, partitions)


def _wait_until_whole(cluster: Cluster, partitions: int) -> None:
    """Every broker says that all replicas of all partitions are in sync."""
    for broker in cluster.brokers.values():
        eventually(partial(_is_whole, broker, partitions), "all are in sync", asked.DEADLINE_S)


def _is_whole(broker: Broker, partitions: int) -> bool:
    return in_sync(broker) == partitions * REPLICAS


def in_sync(broker: Broker) -> int:
    with asked.connection(broker) as raw:
        return sum(len(one.isr_nodes) for topic in asked.metadata(raw).topics for one in topic.partitions)
