"""Idempotent producers to the letter: what is a duplicate, a gap, a fenced epoch, in batches of every shape."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.records import TIME, Batch, Several
from compat_tests.differential.script import ask, script
from compat_tests.differential.scripts.offsets import delete_to, new_producer, offsets
from compat_tests.differential.scripts.produce import NEW_PRODUCER, sequenced
from compat_tests.differential.steps import create, everything, produce, produce_to
from compat_tests.differential.transactional import producers
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec

PRODUCE = ApiKey.PRODUCE
FROM = (3, 11)  # the versions with producer ids


def send(first: int, *values: bytes, epoch: int = 0, pid: Any = "{pid}", **options: Any) -> Batch:
    return Batch(values or (b"v",), producer_id=pid, producer_epoch=epoch, sequence=first, **options)


SCRIPTS = [
    script(
        "idempotent-window",
        PRODUCE,
        "the last five batches are remembered, of different sizes; the sixth last is not",
        create("{t}"),
        NEW_PRODUCER,
        *(produce("{t}", sequenced(first, *[b"x"] * count)) for first, count in ((0, 1), (1, 3), (4, 2), (6, 1))),
        *(produce("{t}", sequenced(first, *[b"x"] * count)) for first, count in ((7, 4), (11, 1), (12, 2))),
        *(produce("{t}", sequenced(first, *[b"x"] * count)) for first, count in ((12, 2), (11, 1), (7, 4), (6, 1))),
        *(produce("{t}", sequenced(first, *[b"x"] * count)) for first, count in ((4, 2), (1, 3), (0, 1))),
        # the first of a remembered batch, but not its size; the middle of one; across two
        *(produce("{t}", sequenced(first, *[b"x"] * count)) for first, count in ((7, 1), (8, 2), (10, 2), (13, 1))),
        *(produce("{t}", sequenced(first)) for first in (15, 13, 2**31 - 1)),
        produce("{t}", sequenced(14)),
        producers(0),
        everything("{t}"),
        versions=FROM,
    ),
    script(
        "idempotent-epochs",
        PRODUCE,
        "a newer epoch begins at 0, an older one is fenced, whatever its sequence",
        create("{t}"),
        NEW_PRODUCER,
        produce("{t}", send(0, b"a", b"b")),
        produce("{t}", send(2, epoch=1)),
        produce("{t}", send(1, epoch=3)),
        produce("{t}", send(0, epoch=3)),
        *(produce("{t}", send(first, epoch=epoch)) for epoch in (0, 1, 2) for first in (0, 1, 2)),
        produce("{t}", send(0, epoch=3)),
        produce("{t}", send(1, epoch=3)),
        produce("{t}", send(3, epoch=3)),
        produce("{t}", send(0, epoch=32_767)),
        produce("{t}", send(1, epoch=4)),
        produce("{t}", send(0, epoch=-1)),
        producers(0),
        everything("{t}"),
        versions=FROM,
    ),
    script(
        "idempotent-several-partitions",
        PRODUCE,
        "each partition counts for itself, and one's gap is not the other's",
        create("{t}", partitions=3),
        NEW_PRODUCER,
        produce_to(("{t}", 0, send(0)), ("{t}", 1, send(0)), ("{t}", 2, send(5))),
        produce_to(("{t}", 0, send(1)), ("{t}", 1, send(0)), ("{t}", 2, send(6)), ("{t}", 9, send(0))),
        produce_to(("{t}", 0, send(3)), ("{t}", 1, send(1)), ("{t}", 2, send(0))),
        produce_to(("{t}", 0, send(2)), ("{t}", 1, send(1, epoch=-1)), ("{t}-none", 0, send(0))),
        producers(0, 1, 2),
        everything("{t}"),
        everything("{t}", 1),
        everything("{t}", 2),
        versions=FROM,
    ),
    script(
        "idempotent-two-producers",
        PRODUCE,
        "producers in one partition do not hear of each other",
        create("{t}"),
        NEW_PRODUCER,
        ask(ApiKey.INIT_PRODUCER_ID, v=0, transactional_id=None, transaction_timeout_ms=1, bind={"q": "producer_id"}),
        *(produce("{t}", send(n, pid=pid)) for n in range(3) for pid in ("{pid}", "{q}")),
        produce("{t}", send(1, pid="{q}")),
        produce("{t}", send(4, pid="{q}")),
        produce("{t}", Batch([b"plain"])),
        *(produce("{t}", send(3, pid=pid)) for pid in ("{pid}", "{q}")),
        producers(0),
        everything("{t}"),
        versions=FROM,
    ),
    script(
        "idempotent-shapes",
        PRODUCE,
        "compressed, of several batches, damaged, without a sequence; in topics with times of their own, compacted",
        create("{t}"),
        NEW_PRODUCER,
        *(produce("{t}", send(n, codec=codec)) for n, codec in enumerate((Codec.GZIP, Codec.LZ4, Codec.SNAPPY))),
        produce("{t}", send(1, codec=Codec.GZIP)),
        produce("{t}", send(1)),
        produce("{t}", Several((send(3), send(4)))),
        produce("{t}", send(3, damage={60: b"\x99"})),
        produce("{t}", send(3, damage={16: b"\x03"})),
        produce("{t}", send(-1)),
        produce("{t}", send(-5)),
        produce("{t}", send(0, pid=-5)),
        produce("{t}", send(3)),
        produce("{t}", send(4), acks=-1),
        produce("{t}", send(4), acks=-1),
        produce("{t}", send(9), acks=2),
        create("{t}-now", message_timestamp_type="LogAppendTime"),
        produce("{t}-now", send(0)),
        produce("{t}-now", send(0)),
        create("{t}-compact", cleanup_policy="compact"),
        produce("{t}-compact", send(0)),
        produce("{t}-compact", send(0, pid="{pid}", epoch=1)),
        produce("{t}-compact", Batch([(b"k", b"v", TIME)], producer_id="{pid}", producer_epoch=0, sequence=0)),
        producers(0),
        everything("{t}"),
        versions=FROM,
    ),
    script(
        "idempotent-deleted",
        PRODUCE,
        "what has been deleted is still a duplicate; the sequence goes on",
        create("{t}", segment_bytes=200),
        NEW_PRODUCER,
        *(produce("{t}", sequenced(n, b"x" * 100)) for n in range(4)),
        delete_to(4),
        offsets(-2, v=7),
        produce("{t}", sequenced(3, b"x" * 100)),
        produce("{t}", sequenced(0, b"x" * 100)),
        produce("{t}", sequenced(5, b"x" * 100)),
        produce("{t}", sequenced(4, b"x" * 100)),
        producers(0),
        versions=FROM,
    ),
    script(
        "idempotent-ids",
        ApiKey.INIT_PRODUCER_ID,
        "ids without a transactional id: every one is new, whatever is said of an old one",
        *(new_producer(timeout=timeout) for timeout in (0, -1, 1, 2**31 - 1)),
        *(new_producer(pid=pid, epoch_=epoch) for pid, epoch in ((0, 0), (-1, 0), (0, -1), (-2, -2), (2**62, 32_767))),
        *(new_producer("", pid=pid, epoch_=epoch) for pid, epoch in ((-1, -1), (3, 3), (-1, 3))),
    ),
]
