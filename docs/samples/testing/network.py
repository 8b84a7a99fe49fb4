"""A leader that is cut off accepts a record with acks=1, and it is lost; with acks=all it is not acknowledged."""

from kpybroker.testing import Cluster

with Cluster(brokers=3, topics=["orders"]) as cluster:

    def orders():
        return cluster.topics()["orders"].partitions[0]

    old = orders().leader
    others = [broker for broker in cluster.ids if broker != old]
    cluster.produce("orders", ["before"])  # with acks=all

    cluster.partition([old], others, coordination=others)  # clients reach all, only the others reach the tree
    careless = cluster.producer(acks=1)
    careless.produce("orders", "acknowledged, and lost")
    careless.flush(60)
    cluster.clock.advance(seconds=19)  # its session ends
    cluster.wait_for(lambda: orders().leader in others, what="another replica leads")
    cluster.produce("orders", ["after"])

    cluster.heal()
    cluster.wait_for(lambda: len(orders().isr) == 3, what="the old leader follows")
    print([record.text for record in cluster.records("orders")])
