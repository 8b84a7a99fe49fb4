"""What happens when the broker dies? Nothing is lost and nothing is twice, with these settings and three replicas."""

from confluent_kafka import Producer

COUNT = 300


def test_a_leader_is_killed_under_a_producer(kafka_broker_factory):
    cluster = kafka_broker_factory(brokers=3)
    cluster.create_topic("orders", replication_factor=3, config={"min.insync.replicas": 2})
    producer = Producer(cluster.config("confluent-kafka", acks="all", enable_idempotence=True))
    failures = []
    for number in range(COUNT):
        producer.produce("orders", str(number), on_delivery=lambda error, _: error and failures.append(error))
        producer.poll(0)
        if number == COUNT // 3:
            cluster[cluster.topics()["orders"].partitions[0].leader].kill()
    assert producer.flush(60) == 0
    assert failures == []
    assert [int(record.text) for record in cluster.records("orders")] == list(range(COUNT))


def test_too_few_replicas_are_an_error_and_not_a_loss(kafka_broker_factory):
    cluster = kafka_broker_factory(brokers=3)
    cluster.create_topic("orders", replication_factor=3, config={"min.insync.replicas": 2})
    leader = cluster.topics()["orders"].partitions[0].leader
    for node in cluster:
        if node.id != leader:
            node.kill()
    cluster.wait_for(lambda: cluster.topics()["orders"].partitions[0].isr == (leader,), 60, "an ISR of one")
    producer = Producer(cluster.config("confluent-kafka", acks="all", message_timeout_ms=3_000))
    failures = []
    producer.produce("orders", "refused", on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    assert failures[0] is not None
    assert cluster.records("orders") == []
