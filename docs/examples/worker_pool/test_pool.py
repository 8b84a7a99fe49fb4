"""Three workers, one of them killed: every job is done."""

import subprocess
import sys
from pathlib import Path

import pytest

POOL = Path(__file__).with_name("pool.py")


@pytest.fixture
def start_worker(kafka_broker, kafka_topic, group_id):
    workers = []

    def start():
        command = [sys.executable, str(POOL), kafka_broker.bootstrap_servers, kafka_topic, group_id, "results"]
        workers.append(subprocess.Popen(command))
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()
        worker.wait()


@pytest.mark.kafka(partitions=6)
def test_the_others_take_over(kafka_broker, kafka_topic, group_id, start_worker):
    kafka_broker.create_topic("results")
    workers = [start_worker() for _ in range(3)]
    kafka_broker.wait_assigned(group_id, kafka_topic, members=3, timeout=30)
    kafka_broker.produce(kafka_topic, [(str(number), str(number)) for number in range(60)])
    workers[0].kill()
    kafka_broker.produce(kafka_topic, [(str(number), str(number)) for number in range(60, 120)])

    def all_done():
        done = {int(record.key_text): int(record.text) for record in kafka_broker.records("results")}
        assert done == {number: number * number for number in range(120)}
        return True

    kafka_broker.wait_for(all_done, timeout=60)
    kafka_broker.wait_assigned(group_id, kafka_topic, members=2, timeout=30)
