"""A disk that is full, and a machine that crashes before the fsync."""

from kpybroker.testing import Cluster

with Cluster(brokers=1) as cluster:
    cluster.create_topic("orders", config={"flush.messages": 2})  # an fsync after every second record
    producer = cluster.producer(acks="all", retries=0)
    outcomes = []

    def write(value):
        producer.produce("orders", value, on_delivery=lambda error, _: outcomes.append(error and error.name()))
        producer.flush(60)

    with cluster.faults.disk_full():
        write("refused")
    write("one")
    with cluster.faults.crash_before_fsync():
        write("two")
        write("three")
        cluster[0].kill()
        cluster[0].start()
    print("outcomes:", outcomes)
    print("after the crash:", [record.text for record in cluster.records("orders")])
