"""Where the copying goes on: one broker, or three that replicate everything.

In a cluster a kill takes, in turns, who coordinates the first copier's transactions, who leads a partition of the
copies, and who coordinates the group: what they knew must be known to the next one, from its replica.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import ClassVar, Protocol

from compat_tests.crash.dump import dump_segments, excuse_followers, find_damage
from compat_tests.eos.gate import Gate
from compat_tests.exchange.files import check_verify
from compat_tests.overload.raw import Raw
from compat_tests.support.cluster import Cluster
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.network.ports import free_port

SOURCE, TARGET, GROUP = "source", "target", "copiers"
OVERRIDES = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
WITHOUT_FEATURES = {"kpybroker.new.cluster.features": "none"}
"""Keys of a broker with a tree of its own whose transactions are of version 1; Kafka knows no such key."""
KILLED_WHILE_STARTING = 0.25
GROUP_KEY, TRANSACTION_KEY = 0, 1


class Place(Protocol):
    gate: Gate

    @property
    def bootstrap(self) -> str: ...

    def start(self) -> None: ...

    def create_topic(self, topic: str, partitions: int) -> None: ...

    def kill(self, random: Random) -> int:
        """Kill a broker and start it again; how often it was killed."""

    def each_leads(self, topic: str) -> Iterator[str]:
        """Have every replica lead all of `topic` for a while; empty where there is one only."""

    def stop_and_check(self) -> list[str]:
        """Stop in order; what is wrong with the files."""

    def close(self) -> None: ...


def _behind(gate: Gate, broker: Broker) -> str:
    """Where the broker says that it is from its next start on: at a door of the gate."""
    door = free_port()
    broker.configure({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{door}"})
    gate.lead(door, broker.port)
    return f"127.0.0.1:{door}"


def kill_and_start(broker: Broker, random: Random) -> int:
    broker.kill()
    kills = 1
    if random.random() < KILLED_WHILE_STARTING:
        end = time.monotonic() + random.uniform(0.05, 0.6)
        broker.service.start(lambda _: time.monotonic() > end)
        broker.kill()
        kills += 1
    broker.start()
    return kills


def check_data(broker: Broker, *, follows: bool) -> list[str]:
    broker.stop()
    dumped = dump_segments(broker.data_dir)
    problems = find_damage(excuse_followers(dumped) if follows else dumped)
    return problems + check_verify(broker.data_dir, set(), is_clean=True)


class OneBroker:
    def __init__(self, broker: Broker) -> None:
        """`broker` is not started yet."""
        self.broker = broker
        self.gate = Gate()
        self.bootstrap = _behind(self.gate, broker)

    def start(self) -> None:
        self.broker.start()

    def create_topic(self, topic: str, partitions: int) -> None:
        create_topic(self.bootstrap, topic, partitions)

    def kill(self, random: Random) -> int:
        return kill_and_start(self.broker, random)

    def each_leads(self, _topic: str) -> Iterator[str]:
        yield from ()

    def stop_and_check(self) -> list[str]:
        return check_data(self.broker, follows=False)

    def close(self) -> None:
        self.broker.service.kill()
        self.gate.close()


class Replicated:
    PROPERTIES: ClassVar = {**OVERRIDES, "min.insync.replicas": "2", "transaction.state.log.min.isr": "2"}

    def __init__(self, cluster: Cluster) -> None:
        """`cluster` is not started yet."""
        self.cluster = cluster
        self.gate = Gate()
        self._turn = count()
        self.bootstrap = ",".join(_behind(self.gate, broker) for broker in cluster.brokers.values())

    def start(self) -> None:
        self.cluster.start()

    def create_topic(self, topic: str, partitions: int) -> None:
        create_topic(self.bootstrap, topic, partitions, replicas=3)

    def _coordinator(self, key: str, key_type: int) -> Broker:
        """Ask a broker that lives, until there is one who coordinates."""
        found = eventually(lambda: self._coordinator_by_brokers(key, key_type), f"the coordinator of {key}")
        return self.cluster.brokers[found]

    def _coordinator_by_brokers(self, key: str, key_type: int) -> int | None:
        broker = next(broker for broker in self.cluster.brokers.values() if broker.service.running)
        with Raw(("127.0.0.1", broker.port)) as raw:
            response = raw.ask(FindCoordinatorRequest(key=key, key_type=key_type), 3)
        return response.node_id if response.error_code == ErrorCode.NONE else None

    def kill(self, random: Random) -> int:
        self.cluster.wait_until_whole()
        turn = next(self._turn)
        if turn % 3 == 0:
            victim = self._coordinator("copier-0", TRANSACTION_KEY)
        elif turn % 3 == 1:
            victim = self.cluster.brokers[self.cluster.state(TARGET).leader]
        else:
            victim = self._coordinator(GROUP, GROUP_KEY)
        return kill_and_start(victim, random)

    def each_leads(self, topic: str) -> Iterator[str]:
        self.cluster.wait_until_whole()
        for first in self.cluster.brokers:
            self.cluster.lead_all(topic, first)
            yield f"broker {first}"

    def stop_and_check(self) -> list[str]:
        return [problem for broker in self.cluster.brokers.values() for problem in check_data(broker, follows=True)]

    def close(self) -> None:
        self.cluster.close()
        self.gate.close()
