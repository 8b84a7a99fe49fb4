"""A worker of a queue: any number of them share a topic, and each job goes to one of them (a share group, KIP-932).

A job that fails is given back, and tried again by any worker; after `TRIES` tries, or at once where another try changes
nothing, it goes to the topic of dead letters with its reason. A job that kills its workers goes there, too.

    python worker.py HOST:PORT TOPIC GROUP
"""

import os
import sys
from collections.abc import Callable

from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

TRIES = 3
LAST_DELIVERY = 5  # share.delivery.count.limit of the group: then the broker gives a job up


def square(job: bytes) -> str:
    """The job itself. ValueError: it can never be done."""
    if job == b"die":
        os._exit(1)
    return str(int(job) ** 2)


class Worker:
    """Takes jobs, and says what became of each once its result or its dead letter is written."""

    def __init__(self, consumer: ShareConsumer, producer: Producer, topic: str, do: Callable[[bytes], str]) -> None:
        self._consumer = consumer
        self._producer = producer
        self._done, self._dead = f"{topic}.done", f"{topic}.dead"
        self._do = do

    def serve_some(self, wait_s: float = 1.0) -> None:
        """The jobs that are there. A worker that dies in between leaves them to the others."""
        jobs = [job for job in self._consumer.poll(wait_s) if not job.error()]
        outcomes = [(job, self._outcome(job)) for job in jobs]
        if self._producer.flush(30):
            raise RuntimeError(f"{self._done} or {self._dead} cannot be written")
        for job, outcome in outcomes:
            self._consumer.acknowledge(job, outcome)
        self._consumer.commit_async()

    def _outcome(self, job: Message) -> AcknowledgeType:
        delivery = job.delivery_count()
        try:
            if delivery == LAST_DELIVERY:
                raise ValueError(f"no worker has said what became of it, in {delivery - 1} deliveries")
            self._producer.produce(self._done, self._do(job.value()), job.key())
        except ValueError as error:
            return self._bury(job, error)
        except Exception as error:
            return AcknowledgeType.RELEASE if delivery < TRIES else self._bury(job, error)
        return AcknowledgeType.ACCEPT

    def _bury(self, job: Message, error: Exception) -> AcknowledgeType:
        where = f"{job.topic()}-{job.partition()}@{job.offset()}"
        headers = {"reason": f"{type(error).__name__}: {error}", "from": where}
        self._producer.produce(self._dead, job.value(), job.key(), headers=headers)
        return AcknowledgeType.REJECT


def main(servers: str, topic: str, group: str) -> None:
    """Work until killed."""
    settings = {"bootstrap.servers": servers, "group.id": group, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer(settings)
    consumer.subscribe([topic])
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    worker = Worker(consumer, producer, topic, square)
    while True:
        worker.serve_some()


if __name__ == "__main__":
    main(*sys.argv[1:])
