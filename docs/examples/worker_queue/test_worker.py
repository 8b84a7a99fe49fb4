"""More workers than partitions, tries, dead letters, and workers that die: no job is lost."""

import subprocess
import sys
from pathlib import Path

import pytest
from worker import LAST_DELIVERY, TRIES, Worker, square

WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture
def queue(kafka_broker, kafka_topic, group_id):
    """The topic of jobs, which has one partition, and those of what becomes of them."""
    kafka_broker.create_topic(f"{kafka_topic}.done")
    kafka_broker.create_topic(f"{kafka_topic}.dead")
    kafka_broker.share_consumer(group_id).close()  # sets share.auto.offset.reset=earliest for the group
    return kafka_topic


@pytest.fixture
def start_worker(kafka_broker, queue, group_id):
    """A worker as a process of its own."""
    workers = []

    def start():
        workers.append(subprocess.Popen([sys.executable, WORKER, kafka_broker.bootstrap_servers, queue, group_id]))
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()
        worker.wait()


@pytest.fixture
def serve(kafka_broker, queue, group_id):
    """A worker in the test, with work of the test's, until it has finished so many jobs."""
    consumer = kafka_broker.share_consumer(group_id, queue, share_acknowledgement_mode="explicit")

    def until_finished(do, jobs):
        worker = Worker(consumer, kafka_broker.producer(), queue, do)

        def finished():
            worker.serve_some(0.1)
            kafka_broker.assert_acknowledged(group_id, queue, range(jobs))
            return True

        kafka_broker.wait_for(finished)

    yield until_finished
    consumer.close()


def done(broker, queue):
    return {int(record.key_text): int(record.text) for record in broker.records(f"{queue}.done")}


def dead(broker, queue):
    """What could not be done, with the reasons."""
    return [(record.text, dict(record.headers)["reason"].decode()) for record in broker.records(f"{queue}.dead")]


def test_one_partition_has_three_workers_and_one_is_killed(kafka_broker, queue, group_id, start_worker):
    workers = [start_worker() for _ in range(3)]

    def all_have_the_partition():
        group = kafka_broker.wait_share_group(group_id, members=3)
        return all(member.assignment == {queue: (0,)} for member in group.members)

    kafka_broker.wait_for(all_have_the_partition)
    kafka_broker.produce(queue, [(str(number), str(number)) for number in range(60)])
    workers[0].kill()
    kafka_broker.produce(queue, [(str(number), str(number)) for number in range(60, 120)])
    kafka_broker.wait_acknowledged(group_id, queue, range(120))
    assert done(kafka_broker, queue) == {number: number**2 for number in range(120)}


def test_what_fails_for_a_while_is_tried_again(kafka_broker, queue, serve):
    kafka_broker.produce(queue, [("1", "1"), ("2", "2")])
    tries = []

    def do(job):
        tries.append(job)
        if len(tries) < TRIES:
            raise ConnectionError("the database is away")
        return square(job)

    serve(do, 2)
    assert done(kafka_broker, queue) == {1: 1, 2: 4}
    assert dead(kafka_broker, queue) == []


def test_what_fails_too_often_becomes_a_dead_letter_and_does_not_stop_the_others(kafka_broker, queue, serve):
    kafka_broker.produce(queue, [("1", "1"), ("13", "13"), ("3", "3")])
    tries = []

    def do(job):
        tries.append(job)
        if job == b"13":
            raise ConnectionError("the database is away")
        return square(job)

    serve(do, 3)
    assert done(kafka_broker, queue) == {1: 1, 3: 9}
    assert dead(kafka_broker, queue) == [("13", "ConnectionError: the database is away")]
    assert tries.count(b"13") == TRIES


def test_what_can_never_be_done_is_not_tried_again(kafka_broker, queue, serve):
    kafka_broker.produce(queue, [("1", "one"), ("2", "2")])
    serve(square, 2)
    assert done(kafka_broker, queue) == {2: 4}
    assert [job for job, _ in dead(kafka_broker, queue)] == ["one"]


def test_a_job_that_kills_its_workers_becomes_a_dead_letter(kafka_broker, queue, group_id, start_worker):
    kafka_broker.produce(queue, [("1", "die"), ("2", "2")])
    for _ in range(LAST_DELIVERY - 1):
        assert start_worker().wait(60) == 1
    start_worker()
    kafka_broker.wait_acknowledged(group_id, queue, range(2))
    assert done(kafka_broker, queue) == {2: 4}
    assert dead(kafka_broker, queue) == [("die", "ValueError: no worker has said what became of it, in 4 deliveries")]
