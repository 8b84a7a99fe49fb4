"""Change data of PostgreSQL by Debezium, exactly once: each change of each transaction in the topic, once, in order."""

from __future__ import annotations

import json
from collections.abc import Callable

from compat_tests.conftest import StartBroker
from compat_tests.connect.conftest import MakeWorkers
from compat_tests.connect.shop import TOMBSTONE, Change, Shop, changes_of
from compat_tests.connect.sources import JSON, POSTGRES_SOURCE, TOPIC, change_data, converters
from compat_tests.connect.topics import becomes, read_to_end
from compat_tests.connect.workers import DEADLINE_S, Worker
from compat_tests.support.machine.postgres import Postgres
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

SNAPSHOT_ROWS, TRANSACTIONS_AT_ONCE = 200, 40
PLAIN_JSON = converters(JSON, schemas_enable="false")
ONCE = {"exactly_once_support": "required", "provide_transaction_metadata": "true"}


class Capture:
    """A shop, a broker, two workers, and the source that runs on one of them."""

    def __init__(self, postgres: Postgres, broker: Broker, workers: list[Worker], seed: int) -> None:
        self.shop = Shop(postgres, seed)
        self.broker, self.workers = broker, workers

    def begin(self) -> None:
        self.shop.create(SNAPSHOT_ROWS)
        config = change_data(self.shop.postgres, **ONCE, **PLAIN_JSON)
        self.workers[0].configure("shop", POSTGRES_SOURCE, **config)
        self.arrived()

    def arrived(self) -> None:
        """Wait until the topic has all changes, and nothing else."""
        changes = [change for change in self.shop.changes if change.op != TOMBSTONE]
        becomes(lambda: [change for change in self.found() if change.op != TOMBSTONE], changes, "all changes")

    def found(self) -> list[Change]:
        return changes_of(read_to_end(self.broker.bootstrap, TOPIC))

    def runner(self) -> tuple[Worker, Worker]:
        """Who runs the source's task, and who does not."""
        alive = next(worker for worker in self.workers if worker.service.running)
        found = alive.where("shop")
        first, second = self.workers
        return (first, second) if first.id == found else (second, first)

    def lose_a_worker(self) -> None:
        runner, other = self.runner()
        runner.service.kill()
        eventually(lambda: other.where("shop") == other.id, "the other worker runs the task", DEADLINE_S)
        runner.start()

    def lose_the_broker(self) -> None:
        self.broker.kill()
        self.broker.start()

    def restart_the_database(self) -> None:
        self.shop.postgres.restart()

    def crash_the_database(self) -> None:
        self.shop.postgres.restart(crash=True)


def test_every_change_once_while_worker_broker_and_database_die(
    own_broker: StartBroker, postgres: Postgres, make_workers: MakeWorkers, seed: int
) -> None:
    """A snapshot, then transactions before and during each fault, and across changes of the table's columns."""
    broker = own_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    capture = Capture(postgres, broker, make_workers(broker.bootstrap, count=2), seed)
    shop = capture.shop
    capture.begin()
    faults: list[Callable[[], None]] = [
        capture.lose_a_worker,
        capture.lose_the_broker,
        capture.restart_the_database,
        capture.crash_the_database,
        capture.lose_a_worker,
    ]
    for number, fault in enumerate(faults):
        shop.transact(TRANSACTIONS_AT_ONCE)
        shop.roll_back()
        fault()
        shop.transact(TRANSACTIONS_AT_ONCE)
        capture.arrived()
        if number == 1:
            shop.add_column()
        elif number == 3:
            shop.drop_column()
    # a worker that is back may take the task again
    _check_transactions(capture, cuts_max=2 * len(faults))
    _check_tombstones(capture, cuts_max=2 * len(faults))
    _check_offsets(capture)


def _check_tombstones(capture: Capture, cuts_max: int) -> None:
    """Each follows its delete at once, and none is there twice.

    A delete and its tombstone have one position in the database's log. A source that is cut off between them does not
    write the tombstone: so Debezium does, on Kafka as well.
    """
    found = capture.found()
    tombstones = [n for n, change in enumerate(found) if change.op == TOMBSTONE]
    assert all((found[n - 1].op, found[n - 1].key) == ("d", found[n].key) for n in tombstones)
    expected = sum(change.op == TOMBSTONE for change in capture.shop.changes)
    assert expected - cuts_max <= len(tombstones) <= expected


def _check_transactions(capture: Capture, cuts_max: int) -> None:
    """The topic of transactions has the end of each, in order, with the number of its events.

    A source that is cut off inside a transaction says again that it begins, or counts from there, on Kafka as well.
    """
    messages = read_to_end(capture.broker.bootstrap, "shop.transaction")
    said = [json.loads(message.value()) for message in messages]
    ends = {one["id"].partition(":")[0]: one["event_count"] for one in said if one["status"] == "END"}
    begun = [one["id"].partition(":")[0] for one in said if one["status"] == "BEGIN"]
    assert list(dict.fromkeys(begun)) == list(ends)
    assert len(ends) == len(capture.shop.transactions)
    pairs = list(zip(ends.values(), capture.shop.transactions, strict=True))
    assert all(count <= real for count, real in pairs)
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    assert len(begun) - len(ends) <= cuts_max, f"begun {len(begun)}, ended {len(ends)}"
    assert len(wrong) <= cuts_max, f"wrong counts: {wrong}"


def _check_offsets(capture: Capture) -> None:
    """The source's offsets are in a compacted topic, written in the transactions of its records."""
    offsets = [
        message for part in range(3) for message in read_to_end(capture.broker.bootstrap, "connect-offset", part)
    ]
    mine = [message for message in offsets if json.loads(message.key())[0] == "shop"]
    (stands,) = capture.workers[0].insist("GET", "connectors/shop/offsets")["offsets"]
    assert stands["partition"] == {"server": "shop"}
    assert stands["offset"] == json.loads(mine[-1].value())
    lsn = end_of_the_log(capture.shop.postgres)
    assert stands["offset"]["lsn"] <= lsn


def end_of_the_log(postgres: Postgres) -> int:
    """Where the database's log ends."""
    return int(postgres.execute("select (pg_current_wal_lsn() - '0/0')::bigint")[0][0])
