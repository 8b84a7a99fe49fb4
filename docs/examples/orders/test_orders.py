"""Tests with confluent-kafka: the fixtures are all there is to set up."""

from itertools import islice

import pytest
from orders import OrderBook, orders


def test_orders_arrive_in_the_order_of_their_customer(kafka_broker, kafka_topic, group_id):
    settings = kafka_broker.config("confluent-kafka")
    book = OrderBook(settings, kafka_topic)
    for amount in (1, 2, 3):
        book.place("ann", amount)
    found = islice(orders(settings, group_id, kafka_topic), 3)
    assert [order["amount"] for order in found] == [1, 2, 3]


@pytest.mark.kafka(partitions=4)
def test_one_customer_is_in_one_partition(kafka_broker, kafka_topic):
    book = OrderBook(kafka_broker.config("confluent-kafka"), kafka_topic)
    for customer in ("ann", "bob", "ann", "ann"):
        book.place(customer, 1)
    of_ann = {record.partition for record in kafka_broker.records(kafka_topic) if record.key == b"ann"}
    assert len(of_ann) == 1


def test_an_order_is_written_once_though_the_first_response_is_lost(kafka_broker, kafka_topic, kafka_faults):
    book = OrderBook(kafka_broker.config("confluent-kafka"), kafka_topic)
    with kafka_faults.disconnect("Produce", "after", topic=kafka_topic, times=1) as lost:
        book.place("ann", 5)
    assert lost.hits == 1
    assert [record.json()["amount"] for record in kafka_broker.records(kafka_topic)] == [5]
