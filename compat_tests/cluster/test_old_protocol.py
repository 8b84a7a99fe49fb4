"""A cluster whose `inter.broker.protocol.version` is older than AlterPartition (2.7) and topic ids (2.8).

Leaders write the ISR to the tree themselves, and controllers of either kind take notice.
"""

from __future__ import annotations

import pytest

from compat_tests.cluster.conftest import MakeCluster
from compat_tests.cluster.traffic import Writer, verify, wait_for_equal_logs

SOME = 200

pytestmark = pytest.mark.wide
"""The same by brokers of ours alone is in `tests/broker/replication/test_isr_writes.py`."""


def test_kafka_and_kpybroker_write_the_isr_for_each_other(own_cluster: MakeCluster, name: str) -> None:
    cluster = own_cluster("kafka", "kpybroker", "kpybroker", inter_broker_protocol_version="2.6")
    cluster.start()
    assert cluster.controller() == 1
    cluster.create(name, "1:2:3,2:3:1", "--config", "min.insync.replicas=2")
    assert "topic_id" not in cluster.json(f"/brokers/topics/{name}")
    writer = Writer(cluster.bootstrap, name, 2)
    writer.start()
    writer.wait_for_more(SOME)
    for victim in (3, 1):  # a follower under Kafka's controller; then that one, so that the next controller is ours
        broker = cluster.brokers[victim]
        broker.kill()
        for partition, leader in enumerate((1, 2) if victim == 3 else (2, 2)):
            cluster.wait_for_leader(name, leader, partition)
        writer.wait_for_more(SOME)
        broker.start()
        for partition in range(2):
            cluster.wait_for_isr(name, {1, 2, 3}, partition)
        cluster.wait(
            lambda: not cluster.tree.get_children("/isr_change_notification"), "the controller has heard of it"
        )
        writer.wait_for_more(SOME)
    assert cluster.controller() in (2, 3)
    writer.stop()
    verify(cluster.bootstrap, writer)
    for partition in range(2):
        wait_for_equal_logs(list(cluster.brokers.values()), name, partition)
