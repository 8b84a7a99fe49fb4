"""Brokers that end, stop responding, and lose their session."""

from kpybroker.testing import Cluster

with Cluster(brokers=3, topics=["orders"]) as cluster:

    def in_sync():
        return sorted(cluster.topics()["orders"].partitions[0].isr)

    cluster.produce("orders", ["written to all three"])
    cluster[1].kill()  # as SIGKILL: connections are reset, files stay as they are
    cluster.wait_for(lambda: in_sync() == [0, 2], what="the controller has noticed")
    cluster.produce("orders", ["written to two"])
    cluster[1].start()  # the same id, port and files
    cluster.wait_for(lambda: in_sync() == [0, 1, 2], what="it has caught up")

    cluster[2].pause()  # as SIGSTOP: its connections stay open, and nothing passes them
    cluster.clock.advance(seconds=19)  # zookeeper.session.timeout.ms is 18000
    cluster.wait_for(lambda: in_sync() == [0, 1], what="its session has ended")
    cluster[2].resume()
    cluster.wait_for(lambda: in_sync() == [0, 1, 2], what="it has registered again")

    before = cluster.controller.id
    cluster.controller.expire_session()
    print("another controller:", cluster.controller.id != before)

    cluster.add_broker()
    cluster.remove_broker(0)  # it hands over what it leads
    print("brokers:", cluster.ids)
