"""Transactions whose producer died, over a kill of the broker: open until somebody ends them, or their time is up.

Who ends them: a sink that is restored and resumes what it had prepared (Flink), one who fences (Connect), a successor
with the same transactional id, `kafka-transactions`, or the coordinator. All are left open in one go, before the kill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import OFFSET_INVALID

from compat_tests.clients.transactions.test_transactions import rows
from compat_tests.conftest import Launcher
from compat_tests.deps import ROOT
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.tools import LOG4J, VERSIONS, Tools, program_command, run_process
from compat_tests.support.transactional import Transactional, visible
from compat_tests.support.waiting import eventually

SETTLE = ROOT / "compat_tests" / "workers" / "Settle.java"
SUCCESSOR, FORGOTTEN = "successor", "forgotten"
TIMEOUT_MS, SOON_MS = 600_000, 5_000
OFFSET = 4


@pytest.fixture(scope="module")
def broker_after_kill(launcher: Launcher, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker that was killed after the producer of each of `names`."""
    versions = VERSIONS if request.config.getoption("--all-versions") else VERSIONS[-1:]
    settings = {
        "transaction_state_log_num_partitions": "4",
        "offsets_topic_num_partitions": "4",
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": "500",
    }
    broker = launcher.broker(**settings)
    for name in names(versions):
        quick.create_topic(broker.bootstrap, name)
        # librdkafka waits forever for a group's coordinator that is only just being made, as Kafka does it
        assert quick.committed(broker.bootstrap, name, [(name, 0)]) == [OFFSET_INVALID]
        leave_open(broker, name, SOON_MS if name == FORGOTTEN else TIMEOUT_MS)
    broker.kill()
    broker.start()
    yield broker
    broker.service.kill()


def names(versions: Sequence[str]) -> list[str]:
    """One transactional id, topic and group each."""
    return [f"{what}-{version}" for what in ("commit", "abort", "fence", "tool") for version in versions] + [
        SUCCESSOR,
        FORGOTTEN,
    ]


def leave_open(broker: Broker, name: str, timeout_ms: int) -> None:
    """A committed transaction, and one with a record and an offset whose producer is killed; others write behind it."""
    producer = Transactional("confluent", broker.bootstrap, name, timeout_ms)
    try:
        producer.do("init")
        producer.transact(name, "before")
        producer.do("begin")
        producer.do("produce", name, 0, ["open"])
        producer.do("offsets", name, [(name, 0, OFFSET)])
    finally:
        producer.kill()
    quick.fill(broker.bootstrap, name, ["behind"])


def settle(version: str, broker: Broker, name: str, *order: str) -> None:
    program = program_command(version, SETTLE, [f"-Dlog4j.configuration=file:{LOG4J}"])
    run_process([*program, broker.bootstrap, name, *order])


def described(broker: Broker, name: str) -> dict[str, str]:
    (row,) = rows(Tools("3.9.1", broker.bootstrap).run("transactions", "describe", "--transactional-id", name).out)
    return row


def is_open(broker: Broker, name: str) -> bool:
    return visible(broker.bootstrap, name) == ["before"] and described(broker, name)["TransactionState"] == "Ongoing"


def ends(broker: Broker, name: str, state: str) -> None:
    """Wait for what is committed, records and offset, or for what is left of it when it is aborted."""
    committed = state == "CompleteCommit"
    values = ["before", "open", "behind"] if committed else ["before", "behind"]
    offset = OFFSET if committed else OFFSET_INVALID
    eventually(lambda: visible(broker.bootstrap, name) == values, f"the end of {name}")
    eventually(lambda: quick.committed(broker.bootstrap, name, [(name, 0)]) == [offset], f"offset {offset}")
    eventually(lambda: described(broker, name)["TransactionState"] == state, state)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_it_is_resumed(broker_after_kill: Broker, end: str, version: str) -> None:
    name = f"{end}-{version}"
    assert is_open(broker_after_kill, name)
    place = described(broker_after_kill, name)
    settle(version, broker_after_kill, name, end, place["ProducerId"], place["ProducerEpoch"])
    ends(broker_after_kill, name, f"Complete{end.title()}")


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_aborted_by_who_fences(broker_after_kill: Broker, version: str) -> None:
    name = f"fence-{version}"
    assert is_open(broker_after_kill, name)
    settle(version, broker_after_kill, name, "fence")
    ends(broker_after_kill, name, "Empty")


def test_it_is_aborted_by_a_successor(broker_after_kill: Broker) -> None:
    name = SUCCESSOR
    assert is_open(broker_after_kill, name)
    successor = Transactional("confluent", broker_after_kill.bootstrap, name, TIMEOUT_MS)
    try:
        successor.do("init")
        ends(broker_after_kill, name, "Empty")
        successor.transact(name, "after")
        eventually(lambda: visible(broker_after_kill.bootstrap, name) == ["before", "behind", "after"], "its own")
    finally:
        successor.kill()


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_aborted_in_a_partition_by_the_tool(broker_after_kill: Broker, version: str) -> None:
    """Readers go on; for the coordinator, who was not asked, it is open still and is no hanging one."""
    name = f"tool-{version}"
    tools = Tools(version, broker_after_kill.bootstrap)
    assert is_open(broker_after_kill, name)
    assert name not in tools.run("transactions", "find-hanging", "--topic", name).out
    place = ("--topic", name, "--partition", "0")
    (producer,) = rows(tools.run("transactions", "describe-producers", *place).out)
    tools.run("transactions", "abort", *place, "--start-offset", producer["CurrentTransactionStartOffset"])
    eventually(lambda: visible(broker_after_kill.bootstrap, name) == ["before", "behind"], "what was held back")
    assert described(broker_after_kill, name)["TransactionState"] == "Ongoing"


def test_it_is_aborted_when_its_time_is_up(broker_after_kill: Broker) -> None:
    ends(broker_after_kill, FORGOTTEN, "CompleteAbort")
