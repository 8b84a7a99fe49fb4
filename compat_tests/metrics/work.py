"""The work that both brokers do: every request, each in one version, with bytes that are the test's own.

Requests that are repeated until something holds are in `prepare`, so that the number of those in `WORK` is known.
"""

from __future__ import annotations

from typing import Final

from compat_tests.differential.grouped import beat, commit, committed, describe, joined, leave, part
from compat_tests.differential.records import TIME, Batch
from compat_tests.differential.script import Response, ask, script
from compat_tests.differential.steps import create, fetch_one, produce, produce_to
from compat_tests.differential.transactional import (
    add,
    add_offsets,
    batch,
    commit_offsets,
    done,
    end,
    init,
    offset,
    write,
)
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec

NAME: Final = "work"
"""Of the topic; others, groups and transactional ids begin with it."""
LOGGERS: Final = 8
"""Kafka's number of this kind of resource."""
KEYED: Final = Batch([(b"k", b"v", TIME)])


def _sequenced(sequence: int) -> Batch:
    return Batch([b"x"], producer_id="{own}", producer_epoch=0, sequence=sequence)


LAST: Final = ask(ApiKey.LIST_GROUPS, v=4)
"""Is not compared. Kafka counts a request once its response is sent, and reads the connection's next one after that: so
all before this one are counted.
"""

PREPARE: Final = script(
    NAME,
    ApiKey.PRODUCE,
    "topics, and the state-change log at TRACE",
    ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        v=1,
        resources=[
            {
                "resource_type": LOGGERS,
                "resource_name": "0",
                "configs": [{"name": "state.change.logger", "config_operation": 0, "value": "TRACE"}],
            }
        ],
    ),
    create("{t}", partitions=2),
    create("{t}-compacted", cleanup_policy="compact"),
    create("{t}-small", max_message_bytes=200, segment_bytes=300),
    create("{t}-doomed"),
    commit(part(0, 0), v=7),
    LAST,
)

WORK: Final = script(
    NAME,
    ApiKey.PRODUCE,
    "what is counted",
    # records of every kind
    *(produce("{t}", Batch([b"a" * 10] * n), v=9) for n in (1, 2, 3)),
    produce("{t}", Batch([b"all"] * 4), acks=-1, v=9),
    produce("{t}", Batch([b"none"] * 5), acks=0, v=9, response=Response.NONE),
    produce_to(("{t}", 0, Batch([b"x"])), ("{t}", 1, Batch([b"y", b"z"])), v=8),
    produce("{t}", Batch([b"packed" * 20] * 6, codec=Codec.GZIP), v=9),
    produce("{t}", Batch([b"old"] * 2, magic=1), v=2),
    produce("{t}-compacted", KEYED, v=9),
    *(produce("{t}-small", Batch([b"s" * 100]), v=9) for _ in range(4)),  # three more segments
    # what fails
    produce("{t}-missing", Batch([b"x"]), v=9),
    produce("{t}", Batch([b"x"]), partition=7, v=9),
    produce("{t}-small", Batch([b"l" * 300]), v=9),
    produce("{t}", Batch([b"x"], damage={17: b"\1\2\3\4"}), v=9),
    produce("{t}", Batch([b"x"], damage={16: b"\3"}), v=9),
    produce("{t}-compacted", Batch([b"no key"]), v=9),
    produce("{t}", Batch([b"x"]), acks=2, v=9),
    ask(
        *(ApiKey.INIT_PRODUCER_ID,),
        v=4,
        transactional_id=None,
        transaction_timeout_ms=60_000,
        bind={"own": "producer_id"},
    ),
    produce("{t}", _sequenced(0), v=9),
    produce("{t}", _sequenced(0), v=9),
    produce("{t}", _sequenced(7), v=9),
    # reads
    fetch_one("{t}"),
    fetch_one("{t}", partition=1),
    fetch_one("{t}", v=2),
    fetch_one("{t}", v=3),
    fetch_one("{t}-small", v=11),
    fetch_one("{t}", 1000),
    fetch_one("{t}", partition=7),
    fetch_one("{t}-missing"),
    # a group
    *joined("member"),
    beat("{member}", "{member_gen}", v=4),
    commit(part(0, 3), part(1, 1), member="{member}", generation="{member_gen}", v=8),
    commit(part(0, 3), member="who", generation=9, v=8),
    committed(0, 1, v=7),
    describe(v=5),
    leave(("{member}", None), v=4),
    # a transaction
    init(v=4, bind={"pid": "producer_id"}),
    add({"{t}": [0, 1]}, v=3),
    write(batch(b"committed"), v=9),
    write(batch(b"and here"), partition=1, v=9),
    add_offsets(v=3),
    commit_offsets(offset(0, 5), v=3),
    end(True, v=3),
    done("CompleteCommit"),
    # administration
    ask(ApiKey.METADATA, v=12, topics=[{"name": "{t}"}]),
    ask(ApiKey.CREATE_TOPICS, v=7, topics=[{"name": "{t}"}], timeout_ms=10_000),
    ask(ApiKey.CREATE_PARTITIONS, v=3, topics=[{"name": "{t}", "count": 3, "assignments": None}], timeout_ms=10_000),
    ask(ApiKey.DELETE_TOPICS, v=5, topic_names=["{t}-doomed"], timeout_ms=10_000),
    ask(ApiKey.ELECT_LEADERS, v=2, election_type=0, topic_partitions=None, timeout_ms=10_000),
    ask(ApiKey.LIST_OFFSETS, v=7, topics=[{"name": "{t}", "partitions": [{"partition_index": 0, "timestamp": -1}]}]),
    ask(
        ApiKey.DELETE_RECORDS,
        v=2,
        timeout_ms=10_000,
        topics=[{"name": "{t}-small", "partitions": [{"partition_index": 0, "offset": 1}]}],
    ),
    ask(ApiKey.API_VERSIONS, v=3, client_software_name="the-work", client_software_version="1.0"),
    LAST,
)
PARTITIONS: Final = 15
"""After the work: 3 of the topic, one each of two others, 5 each of the two that coordinators keep."""
