"""Python's clients in the storm (`compat_tests/faults/clients/others.py`): producers, transactions and group members of
aiokafka and kafka-python. Each says in JSON lines on stdout what it received, and ends orderly on SIGTERM.

    storm_client.py ROLE BOOTSTRAP TOPIC PARTITIONS RATE NAME
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
import threading
from collections.abc import Callable
from random import Random
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as SyncKafkaError

ABORTS = 0.2
RECORDS_MAX = 4
IN_FLIGHT_MAX = 1_000
DELIVERY_S = 90.0
STEP_S = 40.0
RETRY_PAUSE_S = 0.3
POLL_MS = 330  # why: python_client.py

COMMON = {"request_timeout_ms": 8_000, "metadata_max_age_ms": 2_000}
SENDER = {**COMMON, "enable_idempotence": True, "acks": "all", "linger_ms": 2}
MEMBER = {
    **COMMON,
    "request_timeout_ms": 15_000,
    "isolation_level": "read_committed",
    "auto_offset_reset": "earliest",
    "auto_commit_interval_ms": 400,
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 500,
}

Record = tuple[int, int]
"""Partition and number."""

_stdout = threading.Lock()


def say(reported: str, **what: object) -> None:
    with _stdout:
        print(json.dumps({"event": reported, **what}), flush=True)


def note(what: str, error: BaseException) -> None:
    print(f"{what}: {error!r}", file=sys.stderr, flush=True)


class Client:
    """What all have in common: the arguments."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, rate: float, name: str) -> None:
        self.servers = bootstrap.split(",")
        self.topic, self.partitions, self.pause_s, self.name = topic, partitions, 1 / rate, name
        self.random = Random(name)
        self.next = 0

    def value(self, number: int, size: int) -> bytes:
        """What `history.py` takes for a record's identity, of that size at the least."""
        return f"{self.name}.{number}.".ljust(size, "-").encode()

    def record(self) -> Record:
        number, self.next = self.next, self.next + 1
        return number % self.partitions, number

    def drawn(self) -> list[Record]:
        """Those of a transaction."""
        first, self.next = self.next, self.next + self.random.randint(1, RECORDS_MAX)
        return [(self.random.randrange(self.partitions), number) for number in range(first, self.next)]


def size_of(number: int) -> int:
    return 50 + number * 37 % 400


def was_read(message: Any) -> None:
    record = message.value.decode().rstrip("-")
    say("read", partition=message.partition, offset=message.offset, record=record)


# --- aiokafka


class AioClient(Client):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stopping.set)

    async def goes_on(self) -> bool:
        await asyncio.sleep(self.pause_s)
        return not self.stopping.is_set()

    async def produce(self) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self.servers, **SENDER)
        await producer.start()
        under_way: set[asyncio.Task[None]] = set()
        while await self.goes_on():
            if len(under_way) >= IN_FLIGHT_MAX:
                continue
            partition, number = self.record()
            try:  # one after the other: tasks that send side by side would have no order
                sent = await producer.send(self.topic, self.value(number, size_of(number)), partition=partition)
            except KafkaError as error:
                self._refused(number, error)
                continue
            task = asyncio.create_task(self._note_result(number, sent))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way, timeout=DELIVERY_S)
        await producer.stop()

    async def _note_result(self, number: int, sent: asyncio.Future[Any]) -> None:
        try:
            reported = await sent
        except KafkaError as error:
            self._refused(number, error)
        else:
            say("acknowledged", number=number, partition=reported.partition, offset=reported.offset)

    def _refused(self, number: int, error: KafkaError) -> None:
        note(str(number), error)
        say("refused", number=number, why=repr(error))

    async def transact(self) -> None:
        """A new producer when a transaction's end is unknown."""
        producer = await self._transactional()
        while await self.goes_on():
            records, commit, outcome = self.drawn(), self.random.random() >= ABORTS, "unknown"
            try:
                await asyncio.wait_for(self._transaction(producer, records, commit), STEP_S)
                outcome = "committed" if commit else "aborted"
            except (KafkaError, TimeoutError) as error:
                note("a transaction", error)
            say("ended", outcome=outcome, records=records)
            if outcome == "unknown":
                await self._close(producer)
                producer = await self._transactional()
        await self._close(producer)

    async def _transaction(self, producer: AIOKafkaProducer, records: list[Record], commit: bool) -> None:
        await producer.begin_transaction()
        sent = [
            await producer.send(self.topic, self.value(number, 60), partition=partition)
            for partition, number in records
        ]
        await asyncio.gather(*sent)
        await (producer.commit_transaction() if commit else producer.abort_transaction())

    async def _transactional(self) -> AIOKafkaProducer:
        while True:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.servers, transactional_id=self.name, transaction_timeout_ms=15_000, **SENDER
            )
            try:
                await asyncio.wait_for(producer.start(), STEP_S)
                return producer
            except (KafkaError, TimeoutError) as error:
                note("a new producer", error)
                await self._close(producer)
                await asyncio.sleep(RETRY_PAUSE_S)

    async def _close(self, producer: AIOKafkaProducer) -> None:
        try:
            await asyncio.wait_for(producer.stop(), STEP_S)
        except (KafkaError, TimeoutError) as error:
            note("closing", error)

    async def consume(self) -> None:
        consumer = AIOKafkaConsumer(self.topic, bootstrap_servers=self.servers, group_id=self.name, **MEMBER)
        await consumer.start()
        while not self.stopping.is_set():
            try:
                found = await consumer.getmany(timeout_ms=POLL_MS)
            except KafkaError as error:
                note("getmany", error)
                await asyncio.sleep(RETRY_PAUSE_S)
                continue
            for messages in found.values():
                for message in messages:
                    was_read(message)
        await consumer.stop()


# --- kafka-python


class SyncClient(Client):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())

    def produce(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.servers,
            delivery_timeout_ms=int(DELIVERY_S * 1000),
            max_block_ms=int(DELIVERY_S * 1000),
            reconnect_backoff_max_ms=500,
            **SENDER,
        )
        while not self.stopping.wait(self.pause_s):
            partition, number = self.record()
            sent = producer.send(self.topic, self.value(number, size_of(number)), partition=partition)
            sent.add_both(lambda reported, number=number: self._on_result(number, reported))
        producer.flush(DELIVERY_S)
        producer.close(DELIVERY_S)

    def _on_result(self, number: int, reported: Any) -> None:
        if isinstance(reported, Exception):
            note(str(number), reported)
            say("refused", number=number, why=repr(reported))
        else:
            say("acknowledged", number=number, partition=reported.partition, offset=reported.offset)

    def consume(self) -> None:
        consumer = KafkaConsumer(
            self.topic, bootstrap_servers=self.servers, group_id=self.name, reconnect_backoff_max_ms=500, **MEMBER
        )
        while not self.stopping.is_set():
            try:
                found = consumer.poll(POLL_MS)
            except SyncKafkaError as error:
                note("poll", error)
                self.stopping.wait(RETRY_PAUSE_S)
                continue
            for messages in found.values():
                for message in messages:
                    was_read(message)
        consumer.close()


ASYNC_ROLES: dict[str, Callable[[AioClient], Any]] = {
    "aiokafka": AioClient.produce,
    "aiokafka-txn": AioClient.transact,
    "aiokafka-group": AioClient.consume,
}
SYNC_ROLES: dict[str, Callable[[SyncClient], None]] = {
    "kafka-python": SyncClient.produce,
    "kafka-python-group": SyncClient.consume,
}


def main() -> None:
    role, bootstrap, topic, partitions, rate, name = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    arguments = (bootstrap, topic, int(partitions), float(rate), name)
    if role in SYNC_ROLES:
        SYNC_ROLES[role](SyncClient(*arguments))
        return

    async def run() -> None:
        await ASYNC_ROLES[role](AioClient(*arguments))

    asyncio.run(run())


if __name__ == "__main__":
    main()
