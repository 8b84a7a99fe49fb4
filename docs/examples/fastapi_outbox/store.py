"""The orders, and the outbox: an order and the event that reports it are one transaction of the database."""

import json
import sqlite3


class Refused(ValueError):
    """The order cannot be taken."""


class Store:
    """One SQLite file. Another database works in the same way: what counts is that both rows are in one transaction."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(
            """
            CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, amount INTEGER NOT NULL);
            CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL,
                                               event TEXT NOT NULL);
            """
        )

    def add(self, customer: str, amount: int) -> int:
        """The id of a new order. Raises Refused, and then there is no event either."""
        with self._database:
            row = self._database.execute("INSERT INTO orders (customer, amount) VALUES (?, ?)", (customer, amount))
            event = {"order": row.lastrowid, "customer": customer, "amount": amount}
            self._database.execute("INSERT INTO outbox (key, event) VALUES (?, ?)", (customer, json.dumps(event)))
            if amount <= 0:
                raise Refused("the amount must be above 0")
        assert row.lastrowid is not None
        return row.lastrowid

    def pending(self) -> list[tuple[int, str, str]]:
        """Events that are not sent yet, oldest first: id, key, event."""
        return self._database.execute("SELECT id, key, event FROM outbox ORDER BY id").fetchall()

    def sent(self, number: int) -> None:
        """Forget an event that Kafka has."""
        with self._database:
            self._database.execute("DELETE FROM outbox WHERE id = ?", (number,))

    def close(self) -> None:
        """Close the file."""
        self._database.close()
