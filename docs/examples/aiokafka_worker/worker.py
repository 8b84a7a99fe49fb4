"""A worker in one event loop: aiokafka reads jobs, and each job's result and its offset are one transaction.

A worker that dies in between has done nothing that others see: the next one does the job again, and readers with
`read_committed` see each result once. A job that cannot be read goes to the topic of dead letters, in the same way.

    python worker.py HOST:PORT
"""

import asyncio
import json
import signal
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

JOBS, RESULTS, DEAD = "jobs", "results", "jobs.dead"


def work(job: dict[str, int]) -> dict[str, int]:
    """The job itself."""
    return {"number": job["number"], "square": job["number"] ** 2}


def outcome(record: ConsumerRecord) -> tuple[str, bytes]:
    """Where the result of a record goes, and what it is."""
    try:
        return RESULTS, json.dumps(work(json.loads(record.value))).encode()
    except (ValueError, TypeError, KeyError) as error:
        return DEAD, json.dumps({"error": type(error).__name__, "offset": record.offset}).encode()


async def run(servers: str, group: str, stop: asyncio.Event, name: str = "worker") -> None:
    """Work until `stop` is set, and then leave the group."""
    consumer = AIOKafkaConsumer(
        JOBS, bootstrap_servers=servers, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=f"{group}-{name}")
    async with consumer, producer:
        while not stop.is_set():
            for partition, records in (await consumer.getmany(timeout_ms=200, max_records=50)).items():
                await finish(producer, group, partition, records)


async def finish(
    producer: AIOKafkaProducer, group: str, partition: TopicPartition, records: list[ConsumerRecord]
) -> None:
    """The results of some records and the offset behind them, all or nothing."""
    async with producer.transaction():
        for record in records:
            topic, value = outcome(record)
            await producer.send(topic, value, key=record.key)
        await producer.send_offsets_to_transaction({partition: records[-1].offset + 1}, group)


async def main(servers: str) -> None:
    """Until SIGTERM or Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(servers, "workers", stop)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
