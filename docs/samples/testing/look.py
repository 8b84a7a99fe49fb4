"""What one can see of a broker."""

from kpybroker.testing import Broker

with Broker(topics={"orders": 3}, config={"auto.create.topics.enable": False}) as broker:
    consumer = broker.consumer("billing", "orders")
    producer = broker.producer(client_id="shop")
    for number in range(9):
        producer.produce("orders", str(number), partition=number % 3)
    producer.flush(10)
    for _ in range(9):
        consumer.poll(10)
    consumer.commit(asynchronous=False)

    print(broker.topics()["orders"].partitions[0].end_offset)
    print([record.text for record in broker.records("orders", partition=1)])
    print(broker.committed("billing"))
    print(broker.wait_assigned("billing", "orders", members=1).members[0].assignment)
    print(broker.requests("Produce", client_id="shop")[-1].outcome)
    broker.assert_committed("billing", "orders", {0: 3, 1: 3, 2: 3})
    broker.assert_lag("billing", 0)
    consumer.close()
