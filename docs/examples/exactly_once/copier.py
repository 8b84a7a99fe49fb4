"""Copies one topic to another, each record exactly once, whatever fails: one transaction for each poll.

The offsets that were consumed are part of the transaction that writes the copies. After a failure the copier aborts,
goes back to what is committed, and does it again.
"""

from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer


class Copier:
    """`name` is the transactional id: a second copier of the same name fences the first."""

    def __init__(self, settings: dict[str, Any], name: str, source: str, target: str) -> None:
        self._consumer = Consumer(
            {
                **settings,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe([source])
        self._producer = Producer({**settings, "transactional.id": name, "transaction.timeout.ms": 10_000})
        self._producer.init_transactions(30)
        self._target = target

    def copy_some(self, batch: int = 100, wait_s: float = 1.0) -> int:
        """Copy what is there, up to `batch` records; how many. 0 after a failure too: call it again."""
        messages = [one for one in self._consumer.consume(batch, wait_s) if one.error() is None]
        if not messages:
            return 0
        self._producer.begin_transaction()
        try:
            for message in messages:
                self._producer.produce(self._target, message.value(), message.key())
            positions = self._consumer.position(self._consumer.assignment())
            self._producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), 30)
            self._producer.commit_transaction(30)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._producer.abort_transaction(30)
            for position in self._consumer.committed(self._consumer.assignment(), 30):
                position.offset = max(position.offset, 0)
                self._consumer.seek(position)
            return 0
        return len(messages)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
