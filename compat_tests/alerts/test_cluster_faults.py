"""Alerts that a cluster of three causes: it is whole and they are silent, it is in the fault and they fire.

Each test scrapes real brokers on real ZooKeeper before and in the fault, and promtool runs the rules over it. Only time
is made up: what was scraped last is held for the minutes that a rule waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from compat_tests.alerts.conftest import MakeMeasured
from compat_tests.alerts.expressions import metrics_of
from compat_tests.alerts.promtool import Question, ask, firing, rules
from compat_tests.alerts.scraped import Course, Page, scrape, total
from compat_tests.conftest import Launcher
from compat_tests.support.cluster import Cluster
from compat_tests.support.quick import DEADLINE_S, admin_client
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

QUIET_MINUTES = 15
CONTROLLER = "kafka_controller_kafkacontroller_activecontrollercount"
OFFLINE = "kafka_controller_kafkacontroller_offlinepartitionscount"
UNDER_REPLICATED = "kafka_server_replicamanager_underreplicatedpartitions"
UNDER_MIN_ISR = "kafka_server_replicamanager_underminisrpartitioncount"
EXPIRES = "kafka_server_sessionexpirelistener_zookeeperexpires_total"
UNCLEAN = "kafka_controller_controllerstats_uncleanleaderelections_total"
DIRECTORY_OFFLINE = "kafka_log_logmanager_logdirectoryoffline"


@pytest.fixture(scope="module")
def shared_cluster(launcher: Launcher) -> Iterator[Cluster]:
    keys = {"kpybroker.metrics.port": "0", "replica.high.watermark.checkpoint.interval.ms": "500"}
    made = Cluster(launcher.directory / "alerts", launcher.zookeeper("alerts"), ["kpybroker"] * 3, keys)
    spare = made.brokers[3].data_dir.with_name("spare")
    made.brokers[3].configure({"log.dirs": f"{made.brokers[3].data_dir},{spare}"})
    made.start()
    yield made
    made.close()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """All brokers run, and Prometheus has one controller and no fault to report."""
    shared_cluster.heal()
    eventually(lambda: is_whole(page_of(shared_cluster)), "a whole cluster")
    return shared_cluster


def is_whole(page: Page) -> bool:
    faults = sum(total(page, name) for name in (OFFLINE, UNDER_REPLICATED, UNDER_MIN_ISR, DIRECTORY_OFFLINE))
    return faults == 0 and total(page, CONTROLLER) == 1 and total(page, "up") == 3


def page_of(cluster: Cluster, *others: Broker) -> Page:
    brokers = {f"broker-{number}": broker for number, broker in cluster.brokers.items()}
    return scrape(brokers | {f"other-{number}": broker for number, broker in enumerate(others)})


def page_with(
    is_there: Callable[[Page], bool], what: str, scraped: Callable[[], Page], deadline_s: float = DEADLINE_S
) -> Page:
    """The first page in the fault."""
    found: list[Page] = []

    def look() -> bool:
        found[:] = [scraped()]
        return is_there(found[0])

    eventually(look, what, deadline_s)
    return found[0]


def create(cluster: Cluster, name: str, replicas: list[int], **config: str) -> None:
    """A topic of one partition; it is in everybody's ISR."""
    keys = {key.replace("_", "."): value for key, value in config.items()}
    admin = admin_client(cluster.bootstrap)
    topic = NewTopic(name, 1, replica_assignment=[replicas], config=keys)
    admin.create_topics([topic], operation_timeout=DEADLINE_S, request_timeout=DEADLINE_S)[name].result(DEADLINE_S)
    cluster.wait_for_isr(name, set(replicas))


def check(tmp_path: Path, course: Course, questions: Sequence[Question]) -> None:
    metrics = {name for rule in rules().values() for name in metrics_of(rule["expr"])}
    ask(tmp_path, course, metrics, questions)


def test_a_broker_dies(cluster: Cluster, tmp_path: Path) -> None:
    """It led a partition alone, and one that needs two replicas. Each alert waits for as long as its rule says."""
    create(cluster, "alone", [2])
    create(cluster, "needs-two", [2, 1], min_insync_replicas="2")
    before = page_of(cluster)
    cluster.brokers[2].kill()
    during = page_with(
        lambda page: all(total(page, name) for name in (OFFLINE, UNDER_REPLICATED, UNDER_MIN_ISR)),
        "a partition without a leader, and one with too few replicas",
        lambda: page_of(cluster),
    )
    course = Course().hold(before, QUIET_MINUTES).hold(during, 10)
    at_once = ("KafkaBrokerDown", "KafkaOfflinePartitions", "KafkaUnderMinIsr")
    begin_s = QUIET_MINUTES * 60
    questions = [firing(begin_s - 1), firing(begin_s + 45), firing(begin_s + 75, *at_once)]
    check(tmp_path, course, [*questions, firing(course.end_s, *at_once, "KafkaUnderReplicated")])


def test_a_session_expires(cluster: Cluster, tmp_path: Path) -> None:
    before = page_of(cluster)
    cluster.expire(3)
    expired = total(before, EXPIRES) + 1
    during = page_with(lambda page: total(page, EXPIRES) == expired, "a session that expired", lambda: page_of(cluster))
    begin_s = QUIET_MINUTES * 60
    course = Course().hold(before, QUIET_MINUTES).hold(during, 1)
    check(tmp_path, course, [firing(begin_s - 1), firing(begin_s, "KafkaSessionExpired")])


def test_a_leader_is_elected_outside_the_isr(cluster: Cluster, tmp_path: Path) -> None:
    """Broker 1 is the last in the ISR when it dies, and broker 2 comes back."""
    create(cluster, "unclean", [1, 2], unclean_leader_election_enable="true")
    before = page_of(cluster)
    cluster.brokers[2].kill()
    cluster.wait_for_isr("unclean", {1})
    cluster.brokers[1].kill()
    cluster.wait_for_leader("unclean", -1)
    cluster.brokers[2].start()
    during = page_with(lambda page: total(page, UNCLEAN) == 1, "an unclean election", lambda: page_of(cluster))
    begin_s = QUIET_MINUTES * 60
    course = Course().hold(before, QUIET_MINUTES).hold(during, 1)
    check(tmp_path, course, [firing(begin_s - 1), firing(begin_s, "KafkaUncleanElection")])


def test_no_broker_is_the_controller(cluster: Cluster, tmp_path: Path) -> None:
    """A session that is no broker's holds /controller."""
    before = page_of(cluster)
    someone = json.dumps({"version": 1, "brokerid": 99, "timestamp": "0"}).encode()
    change = cluster.tree.transaction()
    change.delete("/controller")
    change.create("/controller", someone, ephemeral=True)
    change.commit()
    try:
        during = page_with(lambda page: not total(page, CONTROLLER), "no controller", lambda: page_of(cluster))
    finally:
        cluster.tree.delete("/controller")
    begin_s = QUIET_MINUTES * 60
    course = Course().hold(before, QUIET_MINUTES).hold(during, 3)
    check(tmp_path, course, [firing(begin_s + 45), firing(course.end_s, "KafkaNoActiveController")])


def test_two_brokers_are_the_controller(
    cluster: Cluster, launcher: Launcher, measured: MakeMeasured, tmp_path: Path
) -> None:
    """A fourth broker was started with another `zookeeper.connect`, and Prometheus asks it as one of the cluster."""
    before = page_of(cluster)
    stray = measured(launcher.zookeeper("astray"), broker_id="4")
    during = page_with(lambda page: total(page, CONTROLLER) == 2, "two controllers", lambda: page_of(cluster, stray))
    begin_s = QUIET_MINUTES * 60
    course = Course().hold(before, QUIET_MINUTES).hold(during, 3)
    check(tmp_path, course, [firing(begin_s + 45), firing(course.end_s, "KafkaSeveralControllers")])


def test_a_log_directory_fails(cluster: Cluster, tmp_path: Path) -> None:
    """One of two, which is a file suddenly."""
    before = page_of(cluster)
    broker = cluster.brokers[3]
    spare = broker.data_dir.with_name("spare")
    aside = spare.with_name("aside")
    spare.rename(aside)
    spare.touch()
    try:
        during = page_with(
            lambda page: total(page, DIRECTORY_OFFLINE, logDirectory=str(spare)) == 1,
            "a directory that is offline",
            lambda: page_of(cluster),
        )
    finally:
        broker.stop()
        spare.unlink()
        aside.rename(spare)
    assert total(before, "kpybroker_log_directory_total_bytes", logDirectory=str(spare)) > 0
    assert total(during, "kpybroker_log_directory_total_bytes", logDirectory=str(spare)) == 0
    begin_s = QUIET_MINUTES * 60
    course = Course().hold(before, QUIET_MINUTES).hold(during, 1)
    check(tmp_path, course, [firing(begin_s - 1), firing(begin_s, "KafkaLogDirectoryOffline")])
