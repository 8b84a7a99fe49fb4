"""Change data into a search index: what Debezium writes about a table becomes documents that can be searched.

The index is SQLite's full-text search; one of another kind works in the same way, if it can keep an offset with the
documents. The offset of each partition is in the transaction of its documents, not in the group: after a crash the
index goes on at the record behind the last that it has, and no change is applied twice or left out.

    python index.py HOST:PORT shop.public.products products.sqlite
"""

import json
import sqlite3
import sys
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition


class Index:
    """Documents by key, and how far each partition has been read."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(
            """
            CREATE VIRTUAL TABLE IF NOT EXISTS documents USING fts5 (key UNINDEXED, body);
            CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);
            """
        )

    def position(self, partition: int) -> int:
        """The offset from which to read."""
        row = self._database.execute("SELECT next FROM positions WHERE partition = ?", (partition,)).fetchone()
        return row[0] if row else 0

    def apply(self, messages: Iterable[Message]) -> None:
        """All of them with their offsets, or none."""
        with self._database:
            for message in messages:
                self._change(message)
                row = (message.partition(), message.offset() + 1)
                self._database.execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", row)

    def _change(self, message: Message) -> None:
        """One change: `after` is the row as it is now, null where it was deleted. A tombstone deletes too."""
        key = json.dumps(json.loads(message.key()), sort_keys=True)
        self._database.execute("DELETE FROM documents WHERE key = ?", (key,))
        row = json.loads(message.value()).get("after") if message.value() is not None else None
        if row is not None:
            body = " ".join(str(value) for value in row.values() if value is not None)
            self._database.execute("INSERT INTO documents VALUES (?, ?)", (key, body))

    def search(self, words: str) -> list[Any]:
        """The keys of the documents that have all these words, the best first."""
        found = self._database.execute("SELECT key FROM documents WHERE documents MATCH ? ORDER BY rank", (words,))
        return [json.loads(key) for (key,) in found]

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def follow(settings: dict[str, Any], topic: str, index: Index, *, to_end: bool = False) -> int:
    """Apply changes until it is killed, or up to the end of the topic; how many there were."""
    ours = {"group.id": "index", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **ours, "enable.partition.eof": True})
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, index.position(number)) for number in partitions])
    left, changes = set(partitions), 0
    try:
        while left or not to_end:
            messages = consumer.consume(500, 1)
            left -= {message.partition() for message in messages if message.error()}
            records = [message for message in messages if not message.error()]
            index.apply(records)
            changes += len(records)
    finally:
        consumer.close()
    return changes


if __name__ == "__main__":
    follow({"bootstrap.servers": sys.argv[1]}, sys.argv[2], Index(sys.argv[3]))
