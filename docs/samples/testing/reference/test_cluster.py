"""A cluster whose brokers and network fail."""

from kpybroker.testing import Cluster


def test_brokers(cluster: Cluster) -> None:
    # Cluster.ids
    # Cluster.controller
    assert cluster.ids == [0, 1, 2]
    assert cluster.controller is not None

    # Node
    # Node.stop
    # Node.start
    # Node.is_up
    cluster[2].stop()
    assert not cluster[2].is_up
    cluster[2].start()

    # Node.kill
    # Node.status
    cluster[2].kill()
    assert cluster[2].status()["state"] == "down"
    cluster[2].start()

    # Node.bootstrap_server
    assert cluster[0].bootstrap_server in cluster.bootstrap_servers

    # Node.pause
    # Node.resume
    cluster[2].pause()
    cluster[2].resume()

    # Node.expire_session
    cluster[2].expire_session()
    cluster.wait_for(lambda: cluster[2].is_up)

    # Cluster.expire_session
    cluster.expire_session(1)

    # Cluster.add_broker
    # Cluster.remove_broker
    added = cluster.add_broker(rack="b")
    assert added.id == 3
    cluster.remove_broker(3)


def test_network(cluster: Cluster) -> None:
    # Cluster.partition
    # Cluster.heal
    cluster.partition([0, 1], [2])
    cluster.heal()


def test_leaders(cluster: Cluster) -> None:
    # Cluster.move_leader
    cluster.move_leader("orders", 0, to=2)
    assert cluster.topics()["orders"].partitions[0].leader == 2

    # Cluster.shuffle_leaders
    cluster.shuffle_leaders("orders", seed=7)
    cluster.move_leader("orders", 0, to=2)

    # Cluster.shrink_isr
    with cluster.shrink_isr("orders", 0, to=[2]):
        assert cluster.topics()["orders"].partitions[0].isr == (2,)

    # Cluster.move_coordinator
    cluster.move_coordinator(to=1, group="billing")

    # Cluster.lag_follower
    follower = next(one for one in cluster.ids if one != cluster.topics()["orders"].partitions[1].leader)
    with cluster.lag_follower("orders", 1, broker=follower):
        cluster.produce("orders", ["it has this one later"])
