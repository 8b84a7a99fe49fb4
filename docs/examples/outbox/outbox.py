"""The outbox: a change and the event that reports it are one transaction of the database; a relay sends the events.

A service that writes to its database and then to Kafka loses the event if it dies in between. Here it writes both to
the database. The relay sends what it finds there, in order, and removes a row when it is acknowledged. If the relay
dies in between, it sends the event again: consumers see its id, and skip what they have seen.
"""

import sqlite3
from typing import Any

from confluent_kafka import Producer


def open_database(path: str) -> sqlite3.Connection:
    """The accounts, and the events that are not sent yet."""
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
        CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL,
                                           event TEXT NOT NULL);
        """
    )
    return database


def deposit(database: sqlite3.Connection, name: str, amount: int) -> None:
    """Change an account and note the event, both or neither. Raises sqlite3.IntegrityError below zero."""
    with database:
        database.execute("INSERT OR IGNORE INTO account VALUES (?, 0)", (name,))
        database.execute("UPDATE account SET balance = balance + ? WHERE name = ?", (amount, name))
        database.execute("INSERT INTO outbox (key, event) VALUES (?, ?)", (name, str(amount)))


def relay(database: sqlite3.Connection, settings: dict[str, Any], topic: str) -> int:
    """Send all events that are pending; how many. Raises RuntimeError if one is not acknowledged: call it again."""
    producer = Producer({**settings, "enable.idempotence": True, "message.timeout.ms": 10_000})
    sent = []
    for number, key, event in database.execute("SELECT id, key, event FROM outbox ORDER BY id").fetchall():

        def acknowledged(error: Any, _: Any, number: int = number) -> None:
            if error is None:
                sent.append(number)

        producer.produce(topic, event, key, headers={"id": str(number)}, on_delivery=acknowledged)
    left = producer.flush(30)
    with database:
        database.executemany("DELETE FROM outbox WHERE id = ?", [(number,) for number in sent])
    if left or database.execute("SELECT 1 FROM outbox").fetchone():
        raise RuntimeError("some events were not acknowledged")
    return len(sent)
