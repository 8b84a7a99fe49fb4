"""What one sees in a broker, what one puts in, and assertions."""

from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType

from kpybroker.testing import Broker, NotThere, Record


def test_topics_and_records(broker: Broker) -> None:
    # Brokers.create_topic
    broker.create_topic("payments", partitions=2, config={"cleanup.policy": "compact"})

    # Brokers.topics
    # Topic
    topic = broker.topics()["payments"]
    assert len(topic.partitions) == 2
    assert topic.config == {"cleanup.policy": "compact"}

    # Partition
    partition = broker.topics()["payments"].partitions[0]
    assert (partition.leader, partition.isr, partition.high_watermark) == (0, (0,), 0)

    # Brokers.produce
    placed = broker.produce("payments", [Record("payments", 1, -1, 0, b"bob", b"text"), ("alice", {"amount": 5})])
    assert placed[0] == (1, 0)  # partition 1, offset 0

    # Brokers.records
    # Record.text
    # Record.key_text
    record = broker.records("payments", partition=1)[0]
    assert (record.key_text, record.text) == ("bob", "text")

    # Record
    # Record.json
    [record] = [one for one in broker.records("payments") if one.key == b"alice"]
    assert record.json() == {"amount": 5}

    # Brokers.end_offsets
    assert broker.end_offsets("orders") == {0: 0, 1: 0, 2: 0}

    # Brokers.delete_records
    broker.produce("orders", ["first"])
    broker.delete_records("orders", before=1, partition=0)
    assert broker.records("orders", partition=0) == []

    # Brokers.compact
    broker.compact("payments")

    # Brokers.apply_retention
    broker.apply_retention()

    # Brokers.delete_topic
    broker.delete_topic("payments")
    assert "payments" not in broker.topics()


def test_files(broker: Broker, tmp_path: Path) -> None:
    # Brokers.load
    file = tmp_path / "records.jsonl"
    file.write_text('{"topic": "orders", "key": "alice", "value": {"amount": 5}}\n')
    assert broker.load(file) == 1


def test_groups(broker: Broker) -> None:
    broker.produce("orders", ["one", "two"])
    consumer = broker.consumer("billing", "orders", library="confluent-kafka", enable_auto_commit=False)
    consumer.consume(2, 60)
    # Brokers.group
    # Group
    # Member
    broker.wait_assigned("billing", "orders")
    group = broker.group("billing")
    assert group is not None
    assert (group.state, group.type) == ("Stable", "classic")
    assert group.members[0].assignment == {"orders": (0, 1, 2)}

    # Brokers.groups
    assert list(broker.groups()) == ["billing"]

    # Brokers.lag
    # Brokers.assert_lag
    broker.assert_lag("billing", 2, "orders")
    assert sum(broker.lag("billing")["orders"].values()) == 2
    consumer.commit(asynchronous=False)
    broker.assert_lag("billing", 0)

    # Brokers.committed
    # Brokers.assert_committed
    offsets = broker.committed("billing")["orders"]
    assert sum(offsets.values()) == 2
    broker.assert_committed("billing", "orders", offsets)

    # NotThere
    with pytest.raises(NotThere, match="billing"):
        broker.lag("biling")
    consumer.close()


def test_a_share_group(broker: Broker) -> None:
    ((at, offset),) = broker.produce("orders", ["paid"])
    # Brokers.share_consumer
    worker = broker.share_consumer("workers", "orders", share_acknowledgement_mode="explicit")
    (order,) = worker.poll(60)

    # Brokers.share_group
    assert broker.share_group("no-such-group") is None

    # Brokers.wait_share_group
    # ShareGroup
    group = broker.wait_share_group("workers", members=1)
    assert group.acquired("orders", at) == {offset: group.members[0].member_id}
    assert group.delivery_counts("orders", at) == {offset: 1}
    assert group.archived("orders", at) == []

    # SharePartition
    # ShareRecords
    # ShareRecords.offsets
    held = next(one for one in group.partitions if one.records)
    assert (held.partition, held.start_offset) == (at, offset)
    assert list(held.records[0].offsets) == [offset]

    # ArchivedRecords
    # ArchivedRecords.offsets
    worker.acknowledge(order)
    ((other_at, other),) = broker.produce("orders", ["refused"])
    (refused,) = worker.poll(60)
    worker.acknowledge(refused, AcknowledgeType.REJECT)
    worker.commit_sync(60)
    group = broker.wait_acknowledged("workers", "orders", [offset], partition=at)
    given_up = next(one.archived[0] for one in group.partitions if one.partition == other_at and one.archived)
    assert (list(given_up.offsets), given_up.reason, given_up.delivery_count) == ([other], "rejected", 1)
    assert group.why_archived("orders", other_at) == {other: "rejected"}

    # Brokers.assert_acknowledged
    broker.assert_acknowledged("workers", "orders", [offset], partition=at)

    # Brokers.wait_acknowledged
    done = broker.wait_acknowledged("workers", "orders", [offset], partition=at)
    assert done.is_done("orders", offset, at)
    worker.close()


def test_assertions(broker: Broker) -> None:
    # Brokers.assert_records
    broker.produce("orders", [("alice", {"amount": 5}), ("bob", {"amount": 7})])
    broker.assert_records("orders", [{"amount": 7}, {"amount": 5}], in_any_order=True)
    broker.assert_records("orders", count=2)

    # Brokers.clear_requests
    # Brokers.assert_no_requests
    broker.clear_requests()
    broker.assert_no_requests("Produce", client_id="billing")


def test_requests(broker: Broker) -> None:
    producer = broker.producer(library="confluent-kafka")
    producer.produce("orders", b"first")
    producer.flush()
    # Brokers.requests
    # Request
    [request] = broker.requests("Produce")
    assert (request.api, request.broker, request.errors) == ("Produce", 0, ())
    assert request.request is not None
    assert request.request["acks"] == -1

    # Brokers.wait_requests
    broker.wait_requests("Produce", 1)


def test_transactions(broker: Broker) -> None:
    # Brokers.transactions
    # Transaction
    producer = broker.producer(library="confluent-kafka", transactional_id="copier")
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"first")
    producer.flush()
    assert broker.transactions()["copier"].state == "Ongoing"
    assert broker.records("orders") == []  # it is not committed yet
    producer.commit_transaction()


def test_snapshots(broker: Broker) -> None:
    # Snapshot
    # Brokers.snapshot
    # Brokers.restore
    with broker.snapshot() as before:
        broker.produce("orders", ["first"])
        broker.restore(before)
    broker.assert_records("orders", count=0)

    # Snapshot.channel
    # Snapshot.drop
    snapshot = broker.snapshot()
    assert snapshot.channel is broker.channel
    snapshot.drop()


def test_versions(broker: Broker) -> None:
    # Brokers.cap_versions
    broker.cap_versions("2.4")  # what Kafka 2.4 served
    broker.cap_versions(apis={"Fetch": (4, 11), "DescribeCluster": None})
    broker.cap_versions()  # all again


def test_metrics_of_clients(broker: Broker) -> None:
    # Brokers.subscribe_client_metrics
    # Brokers.unsubscribe_client_metrics
    # Brokers.wait_client_metrics
    # ClientMetrics
    # ClientMetrics.find
    # Aio.wait_client_metrics
    broker.subscribe_client_metrics("org.apache.kafka.producer", interval_ms=100)
    producer = broker.producer(library="confluent-kafka", client_id="shop")
    producer.produce("orders", b"first")
    producer.flush()
    pushed = broker.wait_client_metrics("shop", pushes=2)
    assert pushed.find("org.apache.kafka.producer.connection.creation.total")
    broker.unsubscribe_client_metrics()

    # Brokers.client_metrics
    # ClientMetrics.value
    # ClientMetric
    [pushed] = broker.client_metrics("shop")
    assert pushed.value(pushed.series[0].name, **pushed.series[0].labels) == pushed.series[0].value
