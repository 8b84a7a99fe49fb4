"""Leaders and coordinators that move, followers that lag."""

from kpybroker.testing import Cluster

with Cluster(brokers=3, topics=["orders"]) as cluster:

    def orders():
        return cluster.topics()["orders"].partitions[0]

    cluster.move_leader("orders", 0, to=2)  # an election: in a new leader epoch, and every broker knows
    print("leader:", orders().leader)
    cluster.move_leader("orders", 0, to=None)  # LEADER_NOT_AVAILABLE, until it is moved again
    cluster.move_leader("orders", 0, to=0)

    cluster.move_coordinator(group="billing", to=1)
    cluster.move_coordinator(group="billing", to=None)  # COORDINATOR_NOT_AVAILABLE
    cluster.move_coordinator(group="billing", to=2)

    producer = cluster.producer(acks="all")
    with cluster.lag_follower("orders", broker=1) as lag:
        producer.produce("orders", "acknowledged later")
        producer.poll(0.1)
        cluster.wait_for(lambda: orders().end_offset == 1, what="the leader has it")
        print("written:", orders().end_offset, "visible:", orders().high_watermark)
    producer.flush(60)
    print("visible:", orders().high_watermark)

    with cluster.shrink_isr("orders", to=[0]):
        print("in sync:", orders().isr)
    cluster.wait_for(lambda: len(orders().isr) == 3, what="all are in sync again")
