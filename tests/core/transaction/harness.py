"""A harness for the transaction state machine: a clock to advance, a log that can fail, and markers on command.

The harness is a `MachineHarness` that also does what `kpybroker/broker/coordinators/transactions.py` does, in memory.
Commands, one a line; `PRODUCER` is `id/epoch`, producer ids are handed out from 100 on:

    TICKET: init ID [timeout=MS] [is=PRODUCER]     TICKET: add ID PRODUCER PARTITION...
    TICKET: commit ID PRODUCER                     TICKET: abort ID PRODUCER
    verify ID PRODUCER PARTITION...                markers [PARTITION=ERROR...]   (completes the oldest order)
    after MS    timeouts    expiry                 the two periodic tasks, and the timers in between
    hold, release [ERROR], time-out                the high watermark stops, moves on, the wait for it times out
    fail ERROR                                     the next append fails
    given ID STATE PRODUCER                        a record of another coordinator in the log
    reload [KEY=VALUE...], lose                    another coordinator takes over; this one stops
    describe ID    list

After every command the log so far is replayed into a fresh machine, whose durable state must equal the live one's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.budget import Owner, StateBudget
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.transaction.machine import TransactionMachine
from kpybroker.core.transaction.records import TransactionRecord, decode_record, encode_record
from kpybroker.core.transaction.state import TransactionMetadata
from kpybroker.core.transaction.values import (
    STATE_OF_TITLE,
    AddPartitions,
    EndResult,
    EndTransaction,
    InitProducerId,
    InitResult,
    MarkersWritten,
    ProducerIdAndEpoch,
    TransactionConfig,
    WriteMarkers,
)
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget
from tests.support.machine_harness import EPOCH_MS, MachineHarness

FIRST_PRODUCER_ID = 100

OWNER = Owner("User:alice")

LogEntry = tuple[bytes, bytes | None]


NOT_ALWAYS_IN_THE_LOG: Any = {
    "last_producer_id": -1,
    "last_producer_epoch": -1,
    "next_producer_id": -1,
    "version": 0,
}


def durable_state(machine: TransactionMachine) -> dict[str, TransactionMetadata]:
    return {
        transactional_id: transaction.stored._replace(**NOT_ALWAYS_IN_THE_LOG)
        for transactional_id, transaction in machine.transactions.items()
        if transaction.stored is not None
    }


def replayed(
    log: Iterable[LogEntry],
    config: TransactionConfig | None = None,
    coordinator_epoch: int = 0,
    budget: StateBudget | None = None,
) -> TransactionMachine:
    machine = TransactionMachine(config or TransactionConfig(), coordinator_epoch, budget)
    for offset, (key, value) in enumerate(log):
        record = decode_record(key, value)
        assert record is not None
        machine.replay(record, offset)
    return machine


class Harness(MachineHarness):
    machine: TransactionMachine

    def __init__(self) -> None:
        super().__init__()
        self.config = TransactionConfig()
        self.coordinator_epoch = 0
        self.budget = StateBudget()
        self.machine = TransactionMachine(self.config, self.coordinator_epoch, self.budget)
        self.log: list[LogEntry] = []
        self.orders: deque[WriteMarkers] = deque()
        self.next_producer_id = FIRST_PRODUCER_ID
        self.level = 0

    def ask(self, ticket: str, request: Any) -> None:
        if isinstance(request, InitProducerId):
            request = replace(request, level=self.level)
        if isinstance(request, InitProducerId | EndTransaction) and self.machine.needs_producer_id(request):
            request = replace(request, new_producer_id=self.new_producer_id())
        owned = isinstance(request, InitProducerId | AddPartitions)
        super().ask(ticket, replace(request, owner=OWNER) if owned else request)

    def new_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def carry_out(self, effect: object) -> None:
        if isinstance(effect, WriteMarkers):
            self.orders.append(effect)
            self.output.append(render_order(effect))
        else:
            super().carry_out(effect)

    def append(self, record: TransactionRecord, write: Any) -> None:
        self.machine.replay(record, len(self.log))
        self.log.append(encode_record(record, self.level))
        self.output.append(f"log {render_record(record)}")

    def render(self, result: object) -> str:
        return render(result)

    def request(self, command: str, name: str, arguments: list[str]) -> object:
        return _REQUESTS[command](name, arguments)

    def respond_to_order(self, order: WriteMarkers, errors: dict[PartitionKey, ErrorCode]) -> None:
        all_errors = {partition: errors.get(partition, ErrorCode.NONE) for partition in order.partitions}
        self.run(self.machine.on_markers(MarkersWritten(order, all_errors), self.now))

    def check(self) -> None:
        assert durable_state(replayed(self.log)) == durable_state(self.machine)
        charged = [one for one in self.machine.transactions.values() if one.size]
        assert self.budget.total == sum(one.size for one in charged)
        assert all(one.size == one.measure() or one.pending is not None for one in charged)

    # --- commands

    def do_verify(self, transactional_id: str, producer: str, *partitions: str) -> None:
        errors = self.machine.verify(transactional_id, *_producer(producer), [_partition(text) for text in partitions])
        self.output.append(" ".join(f"{_name(partition)}:{error.name}" for partition, error in errors.items()))

    def do_markers(self, *responses: str) -> None:
        errors = {_partition(name): ErrorCode[code] for name, code in (response.split("=") for response in responses)}
        self.respond_to_order(self.orders.popleft(), errors)

    def do_timeouts(self) -> None:
        for transactional_id in self.machine.ids():
            needs_id = self.machine.needs_id_to_abort(transactional_id, self.now, self.level)
            new_id = self.new_producer_id() if needs_id else -1
            self.run(self.machine.abort_timed_out(transactional_id, self.now, self.level, new_id))

    def do_level(self, level: str) -> None:
        """The finalized `transaction.version`."""
        self.level = int(level)

    def do_expiry(self) -> None:
        self.run(self.machine.remove_expired(self.machine.ids(), self.now))

    def do_time_out(self) -> None:
        self.settle_held(ErrorCode.REQUEST_TIMED_OUT)

    def do_given(self, transactional_id: str, state: str, producer: str) -> None:
        value = TransactionMetadata(
            *_producer(producer), 60_000, STATE_OF_TITLE[state], frozenset(), self.now.wall_ms, self.now.wall_ms
        )
        self.log.append(encode_record(TransactionRecord(transactional_id, value), self.level))
        self.do_reload()

    def do_lose(self) -> None:
        self.resign()
        assert self.budget.total == 0
        self.machine = replayed(self.log, budget=self.budget)

    def do_reload(self, *settings: str) -> None:
        """Another coordinator loads the log, without the orders of this one."""
        self.do_lose()
        self.orders.clear()
        self.config = replace(self.config, **{k: int(v) for k, v in (s.split("=") for s in settings)})
        self.coordinator_epoch += 1
        self.machine = replayed(self.log, self.config, self.coordinator_epoch, self.budget)
        self.run(run_to_end(self.machine.activate(self.machine.ids(), self.now, WorkBudget())))

    def do_describe(self, transactional_id: str) -> None:
        found = self.machine.describe(transactional_id)
        if found.error is not ErrorCode.NONE:
            self.output.append(found.error.name)
            return
        self.output.append(
            f"{found.state} {found.producer_id}/{found.producer_epoch} timeout={found.timeout_ms} "
            f"start={_time(found.start_timestamp_ms)} [{' '.join(map(_name, found.partitions))}]"
        )

    def do_list(self) -> None:
        for row in self.machine.overviews():
            self.output.append(f"{row.transactional_id} {row.producer_id} {row.state.title}")


# --- requests from text


def _producer(text: str) -> ProducerIdAndEpoch:
    producer_id, epoch = text.split("/")
    return ProducerIdAndEpoch(int(producer_id), int(epoch))


def _partition(text: str) -> PartitionKey:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def _init(transactional_id: str, arguments: list[str]) -> InitProducerId:
    options = dict(argument.split("=") for argument in arguments)
    expected = _producer(options["is"]) if "is" in options else None
    return InitProducerId(transactional_id, int(options.get("timeout", 60_000)), expected)


def _add(version: int) -> Callable[[str, list[str]], AddPartitions]:
    return lambda transactional_id, arguments: AddPartitions(
        transactional_id, *_producer(arguments[0]), frozenset(map(_partition, arguments[1:])), version=version
    )


def _end(committed: bool, version: int) -> Callable[[str, list[str]], EndTransaction]:
    return lambda transactional_id, arguments: EndTransaction(
        transactional_id, *_producer(arguments[0]), committed, version
    )


_REQUESTS: dict[str, Callable[[str, list[str]], object]] = {
    "init": _init,
    "add": _add(0),
    "commit": _end(True, 0),
    "abort": _end(False, 0),
    "add2": _add(2),
    "commit2": _end(True, 2),
    "abort2": _end(False, 2),
}


# --- results to text


def _name(partition: PartitionKey) -> str:
    return f"{partition[0]}-{partition[1]}"


def _time(timestamp_ms: int) -> str:
    return "-" if timestamp_ms == -1 else str(timestamp_ms - EPOCH_MS)


def render(result: object) -> str:
    if isinstance(result, InitResult):
        return f"{result.producer_id}/{result.producer_epoch}" if result.error is ErrorCode.NONE else result.error.name
    if isinstance(result, EndResult):
        has_next = result.error is ErrorCode.NONE and result.producer_id >= 0
        return f"{result.error.name} {result.producer_id}/{result.producer_epoch}" if has_next else result.error.name
    assert isinstance(result, ErrorCode)
    return result.name


def render_order(order: WriteMarkers) -> str:
    return (
        f"order {order.transactional_id} {order.producer_id}/{order.producer_epoch} "
        f"{'commit' if order.committed else 'abort'} by={order.coordinator_epoch} "
        f"[{' '.join(map(_name, order.partitions))}]"
    )


def render_record(record: TransactionRecord) -> str:
    value = record.value
    if value is None:
        return f"{record.transactional_id} tombstone"
    return (
        f"{record.transactional_id} {value.state.title} {value.producer_id}/{value.producer_epoch} "
        f"start={_time(value.start_timestamp_ms)} updated={_time(value.last_update_timestamp_ms)} "
        f"[{' '.join(sorted(map(_name, value.partitions)))}]"
    )
