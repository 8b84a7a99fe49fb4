"""How long a partition is without a leader that serves: kpybroker and Kafka 3.9.1, one after the other, in turns.

    python -m compat_tests.cluster.failover [--rounds 7] [--only kill] [--quick] [--secured]

Two clusters of three brokers on one ZooKeeper, one partition of three replicas. From the moment of
SIGKILL or SIGTERM of its leader, its successor is asked to write a record with acks=all, over and over, until it does.
The floors: session timeout + 1 s after a kill, 1 s after an orderly stop, and 1.2 x Kafka's median for each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from compat_tests.bench.measuring.brokers import scratch_directory
from compat_tests.overload.raw import Raw
from compat_tests.security.secured import Secured, prepare_with
from compat_tests.support.cluster import Cluster
from compat_tests.support.services import Broker, ZooKeeper
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import build_batch

KINDS = ("kafka", "kpybroker")
TOPIC = "failover"
DEADLINE_S = 60.0
ASKED_EVERY_S = 0.002
RATIO_MAX = 1.2
REFUSED_FOR_NOW = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)


class Case(NamedTuple):
    name: str
    is_hard: bool
    leads_cluster: bool
    """The partition's leader is the controller as well."""
    floor_s: float

    @property
    def words(self) -> str:
        return f"{self.name} of {'the controller that leads' if self.leads_cluster else 'a leader'}"


SESSION_MS = 3_000
SESSION = {"zookeeper.session.timeout.ms": str(SESSION_MS)}
KILL_FLOOR_S = SESSION_MS / 1000 + 1
CASES = (
    Case("kill", is_hard=True, leads_cluster=False, floor_s=KILL_FLOOR_S),
    Case("kill", is_hard=True, leads_cluster=True, floor_s=KILL_FLOOR_S),
    Case("stop", is_hard=False, leads_cluster=False, floor_s=1.0),
    Case("stop", is_hard=False, leads_cluster=True, floor_s=1.0),
)


def write_one(connection: Raw) -> ErrorCode:
    batch = bytes(build_batch([(None, b"x", int(time.time() * 1000))]))
    records = ProduceRequest.PartitionProduceData(index=0, records=batch)
    data = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[records])
    response = connection.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 7)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def seconds_until_served(successor: Broker, strike: Callable[[], None]) -> float:
    with Raw(("127.0.0.1", successor.port)) as connection:
        assert write_one(connection) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        begin = time.perf_counter()
        strike()
        while (said := write_one(connection)) is not ErrorCode.NONE:
            assert said in REFUSED_FOR_NOW, said.name
            assert time.perf_counter() - begin < DEADLINE_S, f"not within {DEADLINE_S} s"
            time.sleep(ASKED_EVERY_S)
        return time.perf_counter() - begin


def measure(cluster: Cluster, case: Case) -> float:
    """One round: lead where the case wants it, strike, and heal."""
    controller = cluster.controller()
    leader = next(i for i in cluster.brokers if (i == controller) is case.leads_cluster)
    others = [i for i in cluster.brokers if i != leader]
    if cluster.tree.exists(f"/brokers/topics/{TOPIC}") is not None:
        cluster.tools.run("topics", "--delete", "--topic", TOPIC)
        cluster.wait(lambda: cluster.tree.exists(f"/brokers/topics/{TOPIC}") is None, "the topic is gone")
    cluster.create(TOPIC, ":".join(map(str, [leader, *others])), "--config", "min.insync.replicas=2")
    with Raw(("127.0.0.1", cluster.brokers[leader].port)) as connection:
        cluster.wait(lambda: write_one(connection) is ErrorCode.NONE, "the leader serves")
    service = cluster.brokers[leader].service
    strike = service.kill if case.is_hard else service.terminate
    taken = seconds_until_served(cluster.brokers[others[0]], strike)
    service.stop()
    cluster.wait(lambda: leader not in cluster.live(), "its session has ended")
    cluster.heal()
    cluster.wait_for_isr(TOPIC, set(cluster.brokers))
    return taken


Results = dict[tuple[Case, str], list[float]]


def run(directory: Path, cases: list[Case], rounds: int, is_secured: bool = False) -> Results:
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    secured = Secured(directory / "secured") if is_secured else None
    clusters = {}
    for kind in KINDS:
        connect = f"{zookeeper.connect}/{kind}"
        clusters[kind] = Cluster(directory / kind, connect, [kind] * 3, SESSION, prepare_with(secured, connect))
    results: Results = {(case, kind): [] for case in cases for kind in KINDS}
    try:
        for cluster in clusters.values():
            cluster.start()
        for number in range(rounds):
            for case in cases:
                for kind in KINDS:
                    results[case, kind].append(measure(clusters[kind], case))
                    print(f"{number + 1}: {case.words}, {kind}: {results[case, kind][-1]:.3f} s", file=sys.stderr)
    finally:
        for cluster in clusters.values():
            cluster.close()
        zookeeper.stop()
    return results


def report(results: Results) -> list[str]:
    """Print the table; what misses its floor."""
    missed = []
    print("| until the next leader serves | Kafka, median (most) | kpybroker, median (most) | ratio | at most |")
    print("|---|---|---|---|---|")
    for case in dict.fromkeys(case for case, _ in results):
        reference, ours = results[case, "kafka"], results[case, "kpybroker"]
        ratio = median(ours) / median(reference)
        figures = [f"{median(times):.2f} s ({max(times):.2f})" for times in (reference, ours)]
        print(f"| {case.words} | {figures[0]} | {figures[1]} | {ratio:.2f} | {case.floor_s:.0f} s |")
        if max(ours) > case.floor_s or ratio > RATIO_MAX:
            missed.append(case.words)
    return missed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="How long until the next leader serves, next to Kafka.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases with these words in their names")
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--dir", help="where the brokers keep their files [the system's temporary directory]")
    parser.add_argument("--secured", action="store_true", help="with SASL_SSL, SCRAM and ACLs")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if options.only in case.words]
    with scratch_directory(options.dir) as directory:
        missed = report(run(directory, cases, 1 if options.quick else options.rounds, options.secured))
    if missed:
        print(f"missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
