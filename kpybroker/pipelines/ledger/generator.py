"""Transfers between accounts, written as a bank would: each in a Kafka transaction, some of which are aborted.

The same seed makes the same transfers. Accounts are used unevenly, as real ones are. `write` returns what a ledger
must find, so that a test and the demo have something to compare with.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2024, 3, 5, 8, tzinfo=UTC)
DEADLINE_S = 60.0
QUICK = {"linger.ms": 0, "log_level": 3}
"""A producer that does not wait, and does not print that it waits for a transaction of a writer that died."""
ABORTED, BROKEN = 0.2, 0.01
NO_ENTRIES = (
    b"",
    b"{",
    b'{"time": "2024-03-05T08:00:00Z", "transfer": "t", "account": "a", "amount": 1.5}',
    b'{"time": "+294247-01-10T04:00:54Z", "transfer": "t", "account": "a", "amount": 1}',
)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One movement of money; with a fee it has three entries."""

    number: int
    time: datetime
    amounts: Mapping[str, int]
    """Account -> what is added to it. The sum is zero."""

    def entries(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Key and value of each record."""
        for account, amount in self.amounts.items():
            entry = {"time": self.time.isoformat(), "transfer": f"{prefix}-{self.number}", "account": account}
            yield account, json.dumps({**entry, "amount": amount}).encode()


def transfers(seed: int, count: int, accounts: int = 100) -> Iterator[Transfer]:
    """`count` transfers, a second apart."""
    dice = random.Random(seed)
    for number in range(count):
        payer, payee = (f"account-{min(dice.randrange(accounts), dice.randrange(accounts)):04d}" for _ in range(2))
        amount, fee = dice.randrange(1, 100_000), 25 if dice.random() < 0.3 else 0
        amounts: Counter[str] = Counter()
        for account, part in ((payer, -amount - fee), (payee, amount), ("fees", fee)):
            amounts[account] += part
        used = {account: part for account, part in amounts.items() if part or account != "fees"}
        yield Transfer(number, START + timedelta(seconds=number), used)


@dataclass(frozen=True, slots=True)
class Written:
    """What `write` did: what the committed transfers add to each account, and how many of each kind there were."""

    balances: Counter[str]
    broken: int
    """Records without an entry, between those of committed transfers."""
    committed: int
    aborted: int


def write(bootstrap: str, topic: str, prefix: str, given: Iterable[Transfer], seed: int) -> Written:
    """Write transfers, each in a transaction, and abort some after all their entries were sent."""
    from confluent_kafka import Producer

    dice = random.Random(seed)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": prefix, **QUICK})
    producer.init_transactions(DEADLINE_S)
    balances: Counter[str] = Counter()
    broken = committed = aborted = 0
    for transfer in given:
        producer.begin_transaction()
        for account, value in transfer.entries(prefix):
            producer.produce(topic, value, account)
        if dice.random() < ABORTED:
            producer.flush(DEADLINE_S)
            producer.abort_transaction(DEADLINE_S)
            aborted += 1
            continue
        if dice.random() < BROKEN:
            producer.produce(topic, dice.choice(NO_ENTRIES))
            broken += 1
        producer.commit_transaction(DEADLINE_S)
        committed += 1
        balances.update(transfer.amounts)
    return Written(balances, broken, committed, aborted)
