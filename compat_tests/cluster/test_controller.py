"""What the controller of a cluster does, as Kafka's own tools and the tree show it."""

from __future__ import annotations

import re
from functools import partial

from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.waiting import eventually


def described(text: str) -> dict[int, dict[str, list[int]]]:
    """`kafka-topics --describe`: by partition its leader, replicas and ISR, as lists of brokers."""
    found = {}
    for line in text.splitlines():
        match = re.search(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S*)\s+Isr: (\S*)", line)
        if match:
            partition, leader, replicas, isr = match.groups()
            found[int(partition)] = {
                "leader": [] if leader == "none" else [int(leader)],
                "replicas": [int(i) for i in replicas.split(",")],
                "isr": [int(i) for i in isr.split(",") if i],
            }
    return found


def describe(cluster: Cluster, topic: str, *flags: str) -> dict[int, dict[str, list[int]]]:
    return described(cluster.tools.run("topics", "--describe", "--topic", topic, *flags).out)


def test_three_brokers_have_one_controller_and_every_broker_says_who(cluster: Cluster) -> None:
    for broker_id in cluster.brokers:
        assert set(cluster.metadata(broker_id).brokers) == {1, 2, 3}
        assert cluster.controller_seen_by(broker_id) == cluster.controller()


def test_a_topic_of_three_replicas_is_spread_evenly_and_has_leaders(cluster: Cluster, name: str) -> None:
    cluster.tools.run("topics", "--create", "--topic", name, "--partitions", "6", "--replication-factor", "3")
    found = describe(cluster, name)
    assert len(found) == 6
    for partition in found.values():
        assert sorted(partition["replicas"]) == sorted(partition["isr"]) == [1, 2, 3]
        assert partition["leader"] == partition["replicas"][:1]
    assert sorted(partition["leader"][0] for partition in found.values()) == [1, 1, 2, 2, 3, 3]


def test_when_a_broker_is_killed_others_lead_what_it_led(cluster: Cluster, name: str) -> None:
    victim = next(i for i in cluster.brokers if i != cluster.controller())
    others = [i for i in cluster.brokers if i != victim]
    cluster.create(name, f"{victim}:{others[0]}:{others[1]},{others[1]}:{victim}:{others[0]}")
    cluster.brokers[victim].kill()
    cluster.wait_for_leader(name, others[0])
    cluster.wait_for_isr(name, set(others))
    cluster.wait_for_isr(name, set(others), partition=1)
    cluster.wait_for_leader(name, others[1], partition=1)
    found = describe(cluster, name)
    assert found[0]["leader"] == [others[0]]
    assert describe(cluster, name, "--under-replicated-partitions").keys() == {0, 1}
    cluster.brokers[victim].start()
    cluster.wait(lambda: cluster.live() == {1, 2, 3}, "it is back")
    assert cluster.state(name).leader == others[0]


def test_when_the_controller_is_killed_another_one_takes_over(cluster: Cluster, name: str) -> None:
    victim = cluster.controller()
    assert victim is not None
    others = [i for i in cluster.brokers if i != victim]
    cluster.create(name, f"{victim}:{others[0]}:{others[1]}")
    epoch = int(cluster.tree.get("/controller_epoch")[0])
    cluster.brokers[victim].kill()
    cluster.wait(lambda: cluster.controller() in others, "another controller")
    assert int(cluster.tree.get("/controller_epoch")[0]) > epoch
    cluster.wait_for_leader(name, others[0])
    # The new one works: it makes topics and deletes them.
    cluster.create(f"{name}-after", f"{others[1]}:{others[0]}")
    assert describe(cluster, f"{name}-after")[0]["leader"] == [others[1]]
    cluster.tools.run("topics", "--delete", "--topic", f"{name}-after")
    cluster.wait(lambda: cluster.tree.exists(f"/brokers/topics/{name}-after") is None, "the topic is gone")


def test_a_topic_with_a_replica_on_a_dead_broker_is_deleted_when_that_is_back(cluster: Cluster, name: str) -> None:
    victim = next(i for i in cluster.brokers if i != cluster.controller())
    other = next(i for i in cluster.brokers if i != victim)
    cluster.create(name, f"{victim}:{other}")
    cluster.brokers[victim].kill()
    cluster.wait_for_leader(name, other)
    cluster.tools.run("topics", "--delete", "--topic", name)
    assert cluster.tree.exists(f"/admin/delete_topics/{name}") is not None
    assert cluster.tree.exists(f"/brokers/topics/{name}") is not None
    cluster.brokers[victim].start()
    cluster.wait(lambda: cluster.tree.exists(f"/brokers/topics/{name}") is None, "the topic is gone")
    cluster.wait(lambda: cluster.tree.exists(f"/admin/delete_topics/{name}") is None, "the mark is gone")


def test_partitions_with_no_live_replica_are_unavailable_until_one_is_back(cluster: Cluster, name: str) -> None:
    victim = next(i for i in cluster.brokers if i != cluster.controller())
    cluster.create(name, f"{victim}")
    cluster.brokers[victim].kill()
    cluster.wait_for_leader(name, -1)
    assert describe(cluster, name, "--unavailable-partitions").keys() == {0}
    assert describe(cluster, name)[0]["leader"] == []
    cluster.brokers[victim].start()
    cluster.wait_for_leader(name, victim)
    assert describe(cluster, name, "--unavailable-partitions") == {}


def test_a_broker_that_stops_in_order_hands_over_before_it_goes(cluster: Cluster, name: str) -> None:
    stopping = next(i for i in cluster.brokers if i != cluster.controller())
    other = next(i for i in cluster.brokers if i != stopping)
    cluster.create(name, f"{stopping}:{other}")
    cluster.brokers[stopping].stop()
    # Its registration went last: by then the leader was another one, in the epoch after its own.
    assert cluster.state(name) == (other, {other}, 1)
    output = cluster.brokers[stopping].service.output()
    assert "Controlled shutdown request returned successfully" in output
    cluster.brokers[stopping].start()
    cluster.wait_for_isr(name, {stopping, other})
    assert cluster.state(name).leader == other


def test_preferred_leaders_lead_again_when_asked_to(cluster: Cluster, name: str) -> None:
    stopping = next(i for i in cluster.brokers if i != cluster.controller())
    other = next(i for i in cluster.brokers if i != stopping)
    cluster.create(name, f"{stopping}:{other}")
    cluster.brokers[stopping].restart()
    cluster.wait_for_isr(name, {stopping, other})
    assert cluster.state(name).leader == other
    said = cluster.tools.run("leader-election", "--election-type", "preferred", "--topic", name, "--partition", "0")
    assert "Successfully completed leader election (PREFERRED)" in said.out
    assert cluster.state(name).leader == stopping
    again = cluster.tools.run("leader-election", "--election-type", "preferred", "--topic", name, "--partition", "0")
    assert "Valid replica already elected for partitions" in again.out


def test_an_unclean_leader_is_elected_only_when_asked_for_or_allowed(cluster: Cluster, name: str) -> None:
    follower, leader = [i for i in cluster.brokers if i != cluster.controller()]
    cluster.create(name, f"{leader}:{follower}")
    cluster.create(f"{name}-allowed", f"{leader}:{follower}")
    for topic in (name, f"{name}-allowed"):
        cluster.wait_for_isr(topic, {leader, follower})
    cluster.brokers[follower].kill()
    for topic in (name, f"{name}-allowed"):
        cluster.wait_for_isr(topic, {leader})
    cluster.brokers[leader].kill()
    cluster.brokers[follower].start()
    for topic in (name, f"{name}-allowed"):
        cluster.wait_for_leader(topic, -1)
    refused = cluster.tools.run(
        "leader-election", "--election-type", "preferred", "--topic", name, "--partition", "0", check=False
    )
    assert "1 replica(s) could not be elected" in refused.err
    cluster.tools.run("leader-election", "--election-type", "unclean", "--topic", name, "--partition", "0")
    assert cluster.state(name)[:2] == (follower, {follower})
    cluster.tools.run(
        "configs",
        *("--alter", "--entity-type", "topics", "--entity-name", f"{name}-allowed"),
        *("--add-config", "unclean.leader.election.enable=true"),
    )
    cluster.wait_for_leader(f"{name}-allowed", follower)


def test_a_broker_whose_session_was_closed_registers_again_and_serves_on(cluster: Cluster, name: str) -> None:
    broker_id = next(i for i in cluster.brokers if i != cluster.controller())
    other = next(i for i in cluster.brokers if i != broker_id)
    cluster.create(name, f"{broker_id}:{other}")
    before = cluster.registration(broker_id)
    cluster.expire(broker_id)
    cluster.wait(lambda: cluster.live() == {1, 2, 3}, "all are registered")
    cluster.wait(lambda: cluster.registration(broker_id).czxid > before.czxid, "a new registration, a new broker epoch")
    cluster.wait_for_isr(name, {broker_id, other})
    quick.fill(cluster.bootstrap, name, [f"value {n}" for n in range(100)])


def test_a_controller_whose_session_was_closed_resigns_and_the_cluster_has_one_controller(
    cluster: Cluster, name: str
) -> None:
    old = cluster.controller()
    assert old is not None
    epoch = int(cluster.tree.get("/controller_epoch")[0])
    cluster.expire(old)
    cluster.wait(lambda: int(cluster.tree.get("/controller_epoch")[0]) > epoch, "another election")
    cluster.wait(lambda: cluster.controller() is not None and cluster.live() == {1, 2, 3}, "all are there")
    cluster.create(name, "1:2:3,2:3:1,3:1:2")
    for partition, leader in enumerate((1, 2, 3)):
        cluster.wait_for_leader(name, leader, partition)
    assert {cluster.controller_seen_by(broker_id) for broker_id in cluster.brokers} == {cluster.controller()}


def test_a_controller_that_slept_beyond_its_session_changes_nothing_any_more(cluster: Cluster, name: str) -> None:
    old = cluster.controller()
    assert old is not None
    others = [i for i in cluster.brokers if i != old]
    cluster.create(name, f"{old}:{others[0]}:{others[1]}")
    cluster.brokers[old].service.pause()
    try:
        cluster.expire(old)
        cluster.wait(lambda: cluster.controller() in others, "another controller")
        cluster.wait_for_leader(name, others[0])
    finally:
        cluster.brokers[old].service.resume()
    cluster.wait(lambda: cluster.live() == {1, 2, 3}, "it is back, as a broker")
    assert cluster.controller() in others
    cluster.wait_for_isr(name, {1, 2, 3})
    assert cluster.state(name).leader == others[0]


def test_a_rolling_restart_under_load_loses_nothing(cluster: Cluster, name: str) -> None:
    cluster.create(name, "1:2:3", "--config", "min.insync.replicas=2")
    values = [f"value {n}" for n in range(300)]
    for number, (broker_id, broker) in enumerate(cluster.brokers.items()):
        quick.fill(cluster.bootstrap, name, values[number * 100 : number * 100 + 50])
        broker.stop()
        assert cluster.state(name).leader != broker_id
        quick.fill(cluster.bootstrap, name, values[number * 100 + 50 : number * 100 + 100])
        broker.start()
        cluster.wait_for_isr(name, {1, 2, 3})
    assert [message.value().decode() for message in quick.read(cluster.bootstrap, [(name, 0)], 300)] == values


def test_describe_finds_partitions_under_and_at_their_minimum(cluster: Cluster, name: str) -> None:
    stopping = next(i for i in cluster.brokers if i != cluster.controller())
    other = next(i for i in cluster.brokers if i != stopping)
    for topic, minimum in ((f"{name}-under", 2), (f"{name}-at", 1)):
        cluster.create(topic, f"{stopping}:{other}", "--config", f"min.insync.replicas={minimum}")
        eventually(partial(describe, cluster, topic), "the broker that is asked knows the topic")
        assert describe(cluster, topic, "--under-min-isr-partitions") == {}
    cluster.brokers[stopping].stop()
    flags = ("--under-replicated-partitions", "--under-min-isr-partitions", "--at-min-isr-partitions")
    for topic, found in ((f"{name}-under", [True, True, False]), (f"{name}-at", [True, False, True])):
        assert [bool(describe(cluster, topic, flag)) for flag in flags] == found
