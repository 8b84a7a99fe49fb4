"""Tables through topics into tables: Debezium to its JDBC sink, and Aiven's JDBC source and sink where they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.connect.conftest import MakeWorkers
from compat_tests.connect.plugins import JDBC_VARIABLE, jdbc_directory
from compat_tests.connect.shop import TABLE, Shop
from compat_tests.connect.sources import JDBC_SINK, JSON, POSTGRES_SOURCE, change_data, converters, table_sink
from compat_tests.connect.topics import read_to_end
from compat_tests.connect.workers import DEADLINE_S, Worker
from compat_tests.support.machine.postgres import Postgres, SqlError
from compat_tests.support.services import started
from compat_tests.support.waiting import eventually

ROWS, TRANSACTIONS = 100, 40
WITH_SCHEMAS = converters(JSON, schemas_enable="true")
AIVEN_SOURCE = "io.aiven.connect.jdbc.JdbcSourceConnector"
AIVEN_SINK = "io.aiven.connect.jdbc.JdbcSinkConnector"


def same_rows(source: Postgres, sink: Postgres, copy: str, keep_up: Callable[[], None] = lambda: None) -> None:
    """Wait until the copy has the table's rows; `keep_up` is called before each look."""

    def is_same() -> bool:
        keep_up()
        columns = "id, note, amount::numeric(10,2), paid"
        try:
            copied = sink.execute(f'select {columns} from "{copy}" order by id')
        except SqlError as error:
            raise AssertionError(f"no copy yet: {error}") from None
        here = source.execute(f"select {columns} from {TABLE} order by id")
        assert copied == here, f"{len(copied)} rows for {len(here)}"
        return bool(here)

    eventually(is_same, f"{copy} is {TABLE}", DEADLINE_S)


def restart_what_failed(worker: Worker, connector: str) -> None:
    """As an operator does: a task whose database is away for long fails, and stays so until it is restarted."""
    status = worker.insist("GET", f"connectors/{connector}/status")
    if any(task["state"] == "FAILED" for task in [*status["tasks"], status["connector"]]):
        worker.insist("POST", f"connectors/{connector}/restart?includeTasks=true&onlyFailed=true")


def test_a_table_is_copied_while_workers_and_both_databases_die(
    own_broker: StartBroker, postgres: Postgres, make_workers: MakeWorkers, seed: int
) -> None:
    """Inserts, updates and deletes end as the same rows in another server: nothing is lost, and nothing is left."""
    broker = own_broker()
    shop = Shop(postgres, seed)
    shop.create(ROWS)
    workers = make_workers(broker.bootstrap, count=2)
    with started(Postgres()) as warehouse:
        source = change_data(postgres, exactly_once_support="required", **WITH_SCHEMAS)
        workers[0].configure("shop", POSTGRES_SOURCE, **source)
        workers[0].configure("copy", JDBC_SINK, **table_sink(warehouse, "copied", **WITH_SCHEMAS))

        def keep_up() -> None:
            for connector in ("shop", "copy"):
                restart_what_failed(workers[1], connector)

        same_rows(postgres, warehouse, "copied", keep_up)
        for fault in ("worker", "warehouse stops", "warehouse crashes", "shop's database", "broker"):
            shop.transact(TRANSACTIONS)
            if fault == "worker":
                workers[0].service.kill()
            elif fault == "broker":
                broker.kill()
                broker.start()
            elif fault == "shop's database":
                postgres.restart()
            else:
                warehouse.restart(crash="crashes" in fault)
            shop.transact(TRANSACTIONS)
            same_rows(postgres, warehouse, "copied", keep_up)
    assert [row[0] for row in postgres.execute(f"select count(*) from {TABLE}")] == [str(len(shop.rows))]


@pytest.mark.skipif(jdbc_directory() is None, reason=f"{JDBC_VARIABLE} names no directory of Aiven's JDBC connector")
def test_aivens_source_polls_a_table_and_its_sink_fills_another(
    own_broker: StartBroker, postgres: Postgres, make_workers: MakeWorkers
) -> None:
    """New and updated rows by id and time; a worker is killed, and each row's last state arrives."""
    broker = own_broker()
    columns = "id serial primary key, note text, amount numeric(10,2), paid boolean, at timestamp not null"
    postgres.execute(f"create table {TABLE} ({columns})")
    first, second = make_workers(broker.bootstrap, count=2)
    polling = {"mode": "timestamp+incrementing", "incrementing_column_name": "id", "timestamp_column_name": "at"}
    place = {"connection_url": postgres.jdbc_url, "connection_attempts": "1000", "connection_backoff_ms": "200"}
    source = {
        "topic_prefix": "polled.",
        "table_whitelist": TABLE,
        "poll_interval_ms": "100",
        "numeric_mapping": "best_fit",
    }
    first.configure("poll", AIVEN_SOURCE, **polling, **place, **source, **WITH_SCHEMAS)
    sink = {"topics": f"polled.{TABLE}", "auto_create": "true", "insert_mode": "upsert", "pk_mode": "record_value"}
    more = {"pk_fields": "id", "table_name_format": "polled_copy", "max_retries": "1000", "retry_backoff_ms": "200"}
    from_start = {"consumer_override_auto_offset_reset": "earliest"}
    second.configure("fill", AIVEN_SINK, **place, **sink, **more, **from_start, **WITH_SCHEMAS)

    for fault in ("none", "worker", "database", "broker"):
        values = ", ".join(f"('{fault} {n}', {n}.5, false, clock_timestamp())" for n in range(300))
        postgres.execute(f"insert into {TABLE} (note, amount, paid, at) values {values}")
        if fault == "worker":
            first.service.kill()
        elif fault == "database":
            postgres.restart()
        elif fault == "broker":
            broker.kill()
            broker.start()
        postgres.execute(f"update {TABLE} set paid = true, at = clock_timestamp() where id % 10 = 0")
        same_rows(postgres, postgres, "polled_copy", lambda: restart_what_failed(second, "fill"))
    assert len(read_to_end(broker.bootstrap, f"polled.{TABLE}")) >= 1200
