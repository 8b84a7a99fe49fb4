"""Transactions: producer ids and epochs, partitions and offsets taking part, ends, markers, and what readers see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compat_tests.differential.records import Batch, Several
from compat_tests.differential.script import Ask, ask, script
from compat_tests.differential.scripts.commits import committed
from compat_tests.differential.scripts.groups import G, find, joined
from compat_tests.differential.steps import create, fetch_one, produce, produce_to
from kpybroker.wire.api import ApiKey

INIT = ApiKey.INIT_PRODUCER_ID
ADD = ApiKey.ADD_PARTITIONS_TO_TXN
ADD_OFFSETS = ApiKey.ADD_OFFSETS_TO_TXN
END = ApiKey.END_TXN
COMMIT_OFFSETS = ApiKey.TXN_OFFSET_COMMIT
MARKERS = ApiKey.WRITE_TXN_MARKERS
DESCRIBE = ApiKey.DESCRIBE_TRANSACTIONS
LIST = ApiKey.LIST_TRANSACTIONS
PRODUCERS = ApiKey.DESCRIBE_PRODUCERS

T = "{t}-id"
STRANGER = 987_654_321  # a producer id that nobody has
Partitions = dict[str, Iterable[int]]


def init(name: str | None = T, *, timeout: int = 60_000, pid: Any = -1, epoch: Any = -1, **options: Any) -> Ask:
    fields: dict[str, Any] = {"transactional_id": name, "transaction_timeout_ms": timeout, **options}
    return ask(INIT, producer_id=pid, producer_epoch=epoch, **fields)


def begin(name: str = T, pid: str = "pid", **options: Any) -> Ask:
    """A producer that waits for what was open before; its id is bound."""
    return init(name, v=4, until={"error_code": 0}, bind={pid: "producer_id"}, **options)


def topics_of(partitions: Partitions) -> list[dict[str, Any]]:
    return [{"name": name, "partitions": list(indexes)} for name, indexes in partitions.items()]


def add(partitions: Partitions, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, **options: Any) -> Ask:
    """As a producer up to version 3, as a broker from version 4 on."""
    topics = topics_of(partitions)
    transaction = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch, "topics": topics}
    return ask(
        ADD,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=pid,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
        transactions=[transaction],
        **options,
    )


def added(partitions: Partitions, **options: Any) -> Ask:
    """Once the transaction before is complete."""
    path = "results_by_topic_v3_and_below.0.results_by_partition.0.partition_error_code"
    return add(partitions, v=3, until={path: 0}, **options)


def verify(*transactions: dict[str, Any], **options: Any) -> Ask:
    return ask(ADD, transactions=list(transactions), **options)


def asked(
    partitions: Partitions, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, only: bool = True
) -> dict[str, Any]:
    return {
        "transactional_id": name,
        "producer_id": pid,
        "producer_epoch": epoch,
        "verify_only": only,
        "topics": topics_of(partitions),
    }


def add_offsets(group: str = G, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, **options: Any) -> Ask:
    return ask(ADD_OFFSETS, transactional_id=name, producer_id=pid, producer_epoch=epoch, group_id=group, **options)


def end(committed: bool, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, **options: Any) -> Ask:
    fields = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch, **options}
    return ask(END, committed=committed, **fields)


def done(state: str, name: str = T) -> Ask:
    """Wait for the state, and compare everything about it."""
    return ask(DESCRIBE, v=0, transactional_ids=[name], until={"transaction_states.0.transaction_state": state})


def describe(*names: str, **options: Any) -> Ask:
    return ask(DESCRIBE, transactional_ids=list(names), **options)


def offset(partition: int, value: int, metadata: str | None = "") -> dict[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": value,
        "committed_leader_epoch": 1,
        "committed_metadata": metadata,
    }


def commit_offsets(*offsets: dict[str, Any], topic: str = "{t}", name: str = T, **options: Any) -> Ask:
    fields: dict[str, Any] = {
        "group_id": G,
        "producer_id": "{pid}",
        "producer_epoch": 0,
        "generation_id": -1,
        "member_id": "",
        "group_instance_id": None,
        **options,
    }
    topics = [{"name": topic, "partitions": list(offsets)}]
    return ask(COMMIT_OFFSETS, transactional_id=name, topics=topics, **fields)


def batch(
    *values: bytes, seq: int = 0, pid: Any = "{pid}", epoch: Any = 0, transactional: bool = True, **options: Any
) -> Batch:
    return Batch(values, producer_id=pid, producer_epoch=epoch, sequence=seq, transactional=transactional, **options)


def write(records: Any, *, name: str | None = T, topic: str = "{t}", partition: int = 0, **options: Any) -> Ask:
    return produce(topic, records, partition=partition, transactional_id=name, **options)


def read(committed: bool = True, *, partition: int = 0, offset: int = 0, **options: Any) -> Ask:
    return fetch_one("{t}", offset, partition=partition, isolation_level=int(committed), **options)


def ends(committed: bool, partition: int = 0) -> Ask:
    place = {"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}
    topics = [{"name": "{t}", "partitions": [place]}]
    return ask(ApiKey.LIST_OFFSETS, v=7, replica_id=-1, isolation_level=int(committed), topics=topics)


def producers(*partitions: int, topic: str = "{t}", **options: Any) -> Ask:
    return ask(PRODUCERS, topics=[{"name": topic, "partition_indexes": list(partitions)}], **options)


def marker(
    partitions: Partitions, *, committed: bool = True, pid: Any = "{pid}", epoch: Any = 0, coordinator: int = 0
) -> dict[str, Any]:
    return {
        "producer_id": pid,
        "producer_epoch": epoch,
        "transaction_result": committed,
        "coordinator_epoch": coordinator,
        "topics": [{"name": name, "partition_indexes": list(indexes)} for name, indexes in partitions.items()],
    }


def markers(*wanted: dict[str, Any], **options: Any) -> Ask:
    return ask(MARKERS, markers=list(wanted), **options)


def stable(partition: int = 0, **options: Any) -> Ask:
    return committed(partition, require_stable=True, v=7, **options)


SCRIPTS = [
    script(
        "txn-init",
        INIT,
        "a transactional id: new, again, in the next epoch, with the id it has, with ids and epochs it has not",
        init(),
        init(bind={"pid": "producer_id"}),
        describe(T),
        init(pid="{pid}", epoch=1),
        init(pid="{pid}", epoch=1),  # its answer was lost
        init(pid="{pid}", epoch=0),
        init(pid="{pid}", epoch=9),
        init(pid="{pid}", epoch=2),
        init(pid=STRANGER, epoch=2),
        init(pid=STRANGER, epoch=32_766),
        init(),
        init(pid="{pid}", epoch=2),
        init(pid="{pid}"),
        init(epoch=3),
        init(pid=-2, epoch=3),
        init(pid="{pid}", epoch=-2),
        describe(T),
    ),
    script(
        "txn-init-bad",
        INIT,
        "empty, without id, timeouts out of bounds; of ids that come with a past",
        init(""),
        init("", pid=5, epoch=1),
        init(None),
        init(None, timeout=-1),
        init(None, pid=STRANGER, epoch=3),
        init(None, pid=STRANGER),
        init(timeout=0),
        init(timeout=-1),
        init(timeout=900_001),
        init(timeout=2**31 - 1),
        describe(T),
        init(timeout=900_000),
        init(timeout=1),
        describe(T),
        init("{t}-came-back", pid=STRANGER, epoch=7),
        init("{t}-came-back", pid=STRANGER, epoch=7),
        init("{t}-\u00e4\u20ac"),
        init("{t}-" + "x" * 5000),
    ),
    script(
        "txn-init-fences",
        INIT,
        "whoever comes after aborts what was open, and the one before is fenced in every way",
        create("{t}"),
        begin(),
        added({"{t}": [0]}),
        write(batch(b"a", b"b")),
        init(),
        init(until={"error_code": 0}),
        done("Empty"),
        read(),
        add({"{t}": [0]}, v=3),
        add({"{t}": [0]}, v=1),
        add_offsets(v=3),
        end(True, v=3),
        end(True, v=1),
        write(batch(b"late", seq=2)),
        write(batch(b"late", seq=0)),
        write(batch(b"late", seq=0), v=11),
        write(batch(b"plain", seq=2, transactional=False)),
        init(pid="{pid}", epoch=0, v=3),
        init(pid="{pid}", epoch=1, v=4),
        added({"{t}": [0]}, epoch=2),
        write(batch(b"new", seq=5, epoch=2)),
        write(batch(b"new", seq=0, epoch=2)),
        end(True, epoch=2, v=3),
        done("CompleteCommit"),
        read(),
        init(pid="{pid}", epoch=2),
        done("Empty"),
    ),
    script(
        "txn-add",
        ADD,
        "partitions: of a producer that has the transaction, of others, of topics there are and are not",
        create("{t}", partitions=3),
        add({"{t}": [0]}, pid=5),
        add({"{t}": [0]}, name="", pid=5),
        add({"{t}-none": [0]}, pid=5),
        begin(),
        add({"{t}": [0]}, pid=STRANGER),
        add({"{t}": [0]}, epoch=1),
        add({"{t}": [0]}, epoch=-1),
        add({"{t}": [0]}, name="{t}-other"),
        add({"{t}": [7]}),
        add({"{t}": [-1]}),
        add({"{t}": [0, 7]}),
        add({"{t}": [0], "{t}-none": [0, 1]}),
        add({"bad name": [0]}),
        add({"": [0]}),
        add({"__consumer_offsets": [0]}),
        add({"{t}": [1], "__transaction_state": [0]}),
        describe(T),
        add({"{t}": [1]}),
        add({"{t}": [1]}),
        add({"{t}": [0, 1, 2]}),
        add({"{t}": [0, 0]}),
        describe(T),
        add({"{t}": []}),
        add({}),
        end(False, v=3),
        done("CompleteAbort"),
        add({}),
        describe(T),
        end(True, v=3),
        done("CompleteCommit"),
    ),
    script(
        "txn-add-twice",
        ADD,
        "topics and partitions that come twice in a request",
        create("{t}", partitions=2),
        begin(),
        ask(
            ADD,
            v3_and_below_transactional_id=T,
            v3_and_below_producer_id="{pid}",
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                {"name": "{t}-none", "partitions": [0]},
                {"name": "{t}", "partitions": [1]},
                {"name": "{t}", "partitions": [1]},
            ],
        ),
        ask(
            ADD,
            v3_and_below_transactional_id=T,
            v3_and_below_producer_id="{pid}",
            v3_and_below_producer_epoch=7,
            v3_and_below_topics=[{"name": "{t}", "partitions": [1, 0]}],
        ),
        versions=(0, 3),
    ),
    script(
        "txn-verify",
        ADD,
        "between brokers: verification, and several transactions at once",
        create("{t}", partitions=3),
        verify(asked({"{t}": [0]}, pid=5)),
        verify(asked({"{t}": [0]}, name="", pid=5)),
        begin(),
        begin("{t}-two", "two"),
        verify(asked({"{t}": [0]})),
        added({"{t}": [0, 1]}),
        verify(asked({"{t}": [0]})),
        verify(asked({"{t}": [0, 1, 2]})),
        verify(asked({"{t}": [0, 9]})),
        verify(asked({"{t}": [2], "{t}-none": [0]})),
        verify(asked({"__consumer_offsets": [0]})),
        verify(asked({"{t}": [0]}, pid=STRANGER)),
        verify(asked({"{t}": [0]}, epoch=1)),
        verify(asked({"{t}": [0]}, epoch=-1)),
        verify(asked({})),
        verify(asked({"{t}": [0]}), asked({"{t}": [0]}, name="{t}-two", pid="{two}")),
        verify(
            asked({"{t}": [2]}, only=False),
            asked({"{t}": [2]}, name="{t}-two", pid="{two}", only=False),
            asked({"{t}": [2]}, name="{t}-three", only=False),
        ),
        verify(asked({"{t}": [2]}), asked({"{t}": [2]}, name="{t}-two", pid="{two}")),
        describe(T, "{t}-two"),
        end(True, v=3),
        done("CompleteCommit"),
        verify(asked({"{t}": [0]})),
        versions=(4, 5),
    ),
    script(
        "txn-add-offsets",
        ADD_OFFSETS,
        "groups: of a producer that has the transaction, and of others",
        add_offsets(pid=5),
        add_offsets(name="", pid=5),
        begin(),
        add_offsets(pid=STRANGER),
        add_offsets(epoch=1),
        add_offsets(epoch=-1),
        add_offsets(name="{t}-other"),
        add_offsets(),
        add_offsets(),
        add_offsets(group="{t}-h"),
        add_offsets(group=""),
        describe(T),
        end(True, v=3),
        done("CompleteCommit"),
        init(until={"error_code": 0}, v=4),
        add_offsets(),
        add_offsets(epoch=1),
    ),
    script(
        "txn-commit-offsets",
        COMMIT_OFFSETS,
        "offsets in a transaction: added or not, pending, stable, committed, aborted; wrong in every way",
        create("{t}", partitions=3),
        commit_offsets(offset(0, 1), producer_id=5),
        commit_offsets(offset(0, 1), name="", producer_id=5),
        begin(),
        commit_offsets(offset(0, 1)),
        commit_offsets(offset(0, 1), group_id=""),
        add_offsets(v=3),
        commit_offsets(offset(0, 1), producer_id=STRANGER),
        commit_offsets(offset(0, 1), producer_epoch=1),
        commit_offsets(offset(0, 1), name="{t}-other"),
        commit_offsets(offset(7, 1)),
        commit_offsets(offset(0, 1), topic="{t}-none"),
        commit_offsets(offset(0, 1, "x" * 4097)),
        stable(),
        commit_offsets(offset(0, 5, "note"), offset(1, 6, None), offset(9, 1)),
        stable(0),
        stable(2),
        committed(0, v=5),
        end(True, v=3),
        done("CompleteCommit"),
        stable(0, until={"topics.0.partitions.0.committed_offset": 5}),
        commit_offsets(offset(0, 9)),
        add_offsets(v=3, until={"error_code": 0}),
        commit_offsets(offset(0, 9)),
        end(False, v=3),
        done("CompleteAbort"),
        stable(0, until={"topics.0.partitions.0.error_code": 0}),
        add_offsets(v=3, until={"error_code": 0}),
        commit_offsets(offset(0, 11)),
        init(v=4),
        init(v=4, until={"error_code": 0}),
        stable(0, until={"topics.0.partitions.0.error_code": 0}),
        commit_offsets(offset(0, 12)),
    ),
    script(
        "txn-commit-member",
        COMMIT_OFFSETS,
        "the member that commits must be of the present generation (KIP-447)",
        create("{t}"),
        joined("m"),
        begin(),
        add_offsets(v=3),
        commit_offsets(offset(0, 1), member_id="{m}", generation_id="{m_gen}"),
        commit_offsets(offset(0, 2), member_id="{m}", generation_id=99),
        commit_offsets(offset(0, 2), member_id="{m}", generation_id=-1),
        commit_offsets(offset(0, 2), member_id="who", generation_id="{m_gen}"),
        commit_offsets(offset(0, 2), generation_id="{m_gen}"),
        commit_offsets(offset(0, 2), group_instance_id="none", member_id="{m}", generation_id="{m_gen}"),
        commit_offsets(offset(0, 3)),
        stable(),
        end(True, v=3),
        done("CompleteCommit"),
        stable(until={"topics.0.partitions.0.error_code": 0}),
    ),
    script(
        "txn-end",
        END,
        "ends: of nothing, twice, the other way, of strangers and the fenced",
        create("{t}", partitions=2),
        end(True, pid=5),
        end(True, name="", pid=5),
        begin(),
        end(True),
        end(False),
        end(True, pid=STRANGER),
        end(True, epoch=1),
        end(True, epoch=-1),
        end(True, name="{t}-other"),
        added({"{t}": [0, 1]}),
        end(True),
        done("CompleteCommit"),
        end(True),
        end(False),
        added({"{t}": [1]}),
        describe(T),
        end(False),
        done("CompleteAbort"),
        end(False),
        end(True),
        init(v=4, until={"error_code": 0}),
        end(True),
        end(True, epoch=1),
        end(False, epoch=1),
        describe(T),
    ),
    script(
        "txn-produce",
        ApiKey.PRODUCE,
        "batches of a transaction: with and without its id, added or not, twice, out of order, plain ones between",
        create("{t}", partitions=3),
        write(batch(b"a", pid=5), name="{t}-nobody"),
        begin(),
        write(batch(b"a"), name=None),
        write(batch(b"a"), name=""),
        write(batch(b"a")),
        write(batch(b"a"), name="{t}-other"),
        write(batch(b"a"), partition=9),
        write(batch(b"a"), topic="{t}-none"),
        write(batch(b"plain", pid=-1, epoch=-1, seq=-1, transactional=False)),
        added({"{t}": [0, 1]}),
        write(batch(b"a", pid=STRANGER)),
        write(batch(b"a", epoch=1)),
        write(batch(b"a", b"b")),
        write(batch(b"a", b"b")),
        write(batch(b"c", seq=3)),
        write(batch(b"c", seq=2)),
        write(batch(b"in no transaction", seq=3, transactional=False)),
        write(batch(b"c", seq=0), partition=2),
        produce_to(("{t}", 1, batch(b"d")), ("{t}", 2, batch(b"d")), transactional_id=T),
        produce_to(("{t}", 1, batch(b"e", seq=1)), ("{t}", 0, batch(b"e", pid=STRANGER)), transactional_id=T),
        write(Several((batch(b"f", seq=3), batch(b"g", seq=4)))),
        write(batch(b"control", seq=3, damage={22: b"\x30"}, sign=True)),
        write(batch(b"control", pid=-1, epoch=-1, seq=-1, damage={22: b"\x20"}, sign=True), name=None),
        write(batch(b"no id", pid=-1, epoch=-1, seq=-1), partition=1),
        write(batch(b"h", seq=3), acks=7),
        read(),
        read(False),
        ends(True),
        ends(False),
        end(True, v=3),
        done("CompleteCommit"),
        write(batch(b"late", seq=3)),
        read(),
        read(partition=1),
        ends(True),
        producers(0, 1, 2),
        versions=(3, 11),
    ),
    script(
        "txn-read",
        ApiKey.FETCH,
        "committed, aborted and open transactions as readers of both kinds see them",
        create("{t}"),
        begin("{t}-1", "one"),
        begin("{t}-2", "two"),
        added({"{t}": [0]}, name="{t}-1", pid="{one}"),
        added({"{t}": [0]}, name="{t}-2", pid="{two}"),
        write(batch(b"plain 1", pid=-1, epoch=-1, seq=-1, transactional=False)),
        write(batch(b"aborted 1", pid="{one}"), name="{t}-1"),
        write(batch(b"kept 1", pid="{two}"), name="{t}-2"),
        write(batch(b"plain 2", pid=-1, epoch=-1, seq=-1, transactional=False)),
        read(v=None),
        read(False, v=None),
        ends(True),
        ends(False),
        end(False, name="{t}-1", pid="{one}", v=3),
        done("CompleteAbort", "{t}-1"),
        read(v=None),
        ends(True),
        end(True, name="{t}-2", pid="{two}", v=3),
        done("CompleteCommit", "{t}-2"),
        read(v=None),
        read(False, v=None),
        read(offset=2, v=None),
        read(offset=5, v=None),
        read(offset=99, v=None),
        added({"{t}": [0]}, name="{t}-1", pid="{one}"),
        write(batch(b"open", pid="{one}", seq=1), name="{t}-1"),
        read(offset=4, v=None),
        ends(True),
        ends(False),
        read(offset=6, max_wait_ms=300, min_bytes=1, v=None, waits_ms=250),
        versions=(4, 12),
    ),
    script(
        "txn-markers",
        MARKERS,
        "markers: for partitions there are and are not, of old epochs, for nobody's transaction, several",
        create("{t}", partitions=3),
        begin(),
        added({"{t}": [0, 1]}),
        write(batch(b"a")),
        markers(),
        markers(marker({})),
        markers(marker({"{t}-none": [0]})),
        markers(marker({"{t}": [9]})),
        markers(marker({"{t}": [2]}, pid=STRANGER)),
        markers(marker({"{t}": [0]}, committed=False, coordinator=5)),
        read(False),
        producers(0),
        write(batch(b"b", seq=1)),
        markers(marker({"{t}": [0]}, coordinator=4)),
        markers(marker({"{t}": [0]}, epoch=-1)),
        markers(marker({"{t}": [0, 1, 2]}, epoch=3, coordinator=5)),
        markers(marker({"{t}": [0]}, epoch=2, coordinator=5)),
        markers(marker({"{t}": [1]}, epoch=3), marker({"{t}": [2]}, epoch=4), marker({"{t}": [1]}, pid=STRANGER)),
        markers(marker({"{t}": [1], "{t}-none": [0]}, epoch=4), marker({"{t}": [1]}, epoch=5)),
        read(False),
        producers(0, 1, 2),
    ),
    script(
        "txn-describe",
        DESCRIBE,
        "every state from the outside; unknown and empty ids",
        create("{t}", partitions=3),
        create("{t}-2", partitions=2),
        describe(),
        describe("{t}-none", "", "{t}-none"),
        begin(),
        describe(T),
        added({"{t}": [2, 0], "{t}-2": [1]}),
        describe(T, "{t}-none", T),
        end(True, v=3),
        done("CompleteCommit"),
        begin(),
        describe(T),
        added({"{t}": [0]}, epoch=1),
        describe(T),
        init(v=4),
        done("CompleteAbort"),
        describe(T),
    ),
    script(
        "txn-list",
        LIST,
        "filters by state, producer and age; words that are no states",
        create("{t}"),
        begin("{t}-empty", "empty"),
        begin("{t}-open", "open"),
        begin("{t}-kept", "kept"),
        begin("{t}-dropped", "dropped"),
        added({"{t}": [0]}, name="{t}-open", pid="{open}"),
        added({"{t}": [0]}, name="{t}-kept", pid="{kept}"),
        added({"{t}": [0]}, name="{t}-dropped", pid="{dropped}"),
        end(True, name="{t}-kept", pid="{kept}", v=3),
        end(False, name="{t}-dropped", pid="{dropped}", v=3),
        done("CompleteCommit", "{t}-kept"),
        done("CompleteAbort", "{t}-dropped"),
        *(
            ask(LIST, only={"transaction_states": "transactional_id={t}-"}, **fields)
            for fields in (
                {"state_filters": [], "producer_id_filters": []},
                {"state_filters": ["Ongoing"], "producer_id_filters": []},
                {"state_filters": ["Ongoing", "Empty", "Empty"], "producer_id_filters": []},
                {"state_filters": ["CompleteCommit", "CompleteAbort", "Dead"], "producer_id_filters": []},
                {"state_filters": ["PrepareEpochFence", "PrepareAbort", "PrepareCommit"], "producer_id_filters": []},
                {"state_filters": ["ongoing"], "producer_id_filters": []},
                {"state_filters": ["nonsense", "Ongoing"], "producer_id_filters": []},
                {"state_filters": [], "producer_id_filters": ["{kept}", "{open}"]},
                {"state_filters": ["Ongoing"], "producer_id_filters": ["{kept}", "{open}"]},
                {"state_filters": [], "producer_id_filters": [STRANGER]},
                {"state_filters": [], "producer_id_filters": [], "duration_filter": 3_600_000},
                {"state_filters": [], "producer_id_filters": [], "duration_filter": -1},
                {"state_filters": [], "producer_id_filters": [], "duration_filter": -99},
                {"state_filters": ["Ongoing"], "producer_id_filters": [], "duration_filter": 3_600_000},
            )
        ),
    ),
    script(
        "txn-producers",
        PRODUCERS,
        "idempotent and transactional producers of a partition; topics there are and are not",
        create("{t}", partitions=3),
        producers(0),
        init(None, v=0, bind={"plain": "producer_id"}),
        write(batch(b"a", b"b", pid="{plain}", transactional=False), name=None, v=9),
        producers(0, 1),
        begin(),
        added({"{t}": [0, 1]}),
        write(batch(b"c"), v=9),
        producers(0, 1, 2),
        end(True, v=3),
        done("CompleteCommit"),
        producers(0, 1, 0),
        producers(9),
        producers(-1),
        producers(),
        producers(0, topic="{t}-none"),
        producers(0, 1, topic="bad name"),
        producers(0, topic=""),
        producers(0, topic="."),
        ask(PRODUCERS, topics=[]),
    ),
    script(
        "txn-timeout",
        END,
        "a transaction left open is aborted when its time is over, and its producer fenced",
        create("{t}"),
        begin(timeout=1000),
        added({"{t}": [0]}),
        write(batch(b"a"), v=9),
        read(),
        done("CompleteAbort"),
        read(),
        end(True),
        end(False),
        add({"{t}": [0]}, v=3),
        write(batch(b"b", seq=1), v=9),
        init(v=4, pid="{pid}", epoch=0),
        init(v=4, pid="{pid}", epoch=1),
        init(v=4),
        done("Empty"),
        end(True, epoch=3),
    ),
    script(
        "txn-find",
        ApiKey.FIND_COORDINATOR,
        "the coordinator of a transactional id",
        find("{t}", key_type=1),
        find("", key_type=1),
        find("{t}-1", "{t}-2", key_type=1),
        versions=(1, 6),
    ),
]
