"""Spark's source and sink at a locked broker: over SASL_SSL with SCRAM-SHA-512, and over TLS with a certificate.

The authorizer lets one principal use a test's topics and groups. Here and not next to the other clients, because one
Spark serves all tests that need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from compat_tests.conftest import Launcher
from compat_tests.security.locked import OTHER_USER, Caller, Locked, java_settings, start_locked
from compat_tests.spark.support import Seen, Stream, batch, records, seen, write
from compat_tests.spark.test_sink import content, frame_of, stored
from compat_tests.support.quick import create_topic, end_offset

DOORS = {"scram": "PEM", "mtls": "PEM", "mtls-pkcs12": "PKCS12"}
"""The door, and the type of a certificate's store."""


@pytest.fixture(scope="module")
def locked(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    one = start_locked(launcher.unstarted, tmp_path_factory.mktemp("locked"))
    yield one
    one.broker.service.kill()


class Door(NamedTuple):
    """A broker, and who Spark is there."""

    locked: Locked
    caller: Caller
    store: str

    def options(self, group: str, caller: Caller | None = None) -> dict[str, str]:
        """Spark's, the address apart."""
        settings = java_settings(caller or self.caller, self.store)
        return {"groupIdPrefix": group, **{f"kafka.{key}": value for key, value in settings.items()}}

    def sink(self, topic: str, caller: Caller | None = None) -> dict[str, str]:
        who = caller or self.caller
        return {
            "kafka.bootstrap.servers": who.bootstrap,
            "topic": topic,
            "includeHeaders": "true",
            **self.options(topic, who),
        }

    def topic(self, name: str, partitions: int = 2) -> str:
        """A new one for the caller alone, as are all whose names begin so."""
        create_topic(self.locked.plain, name, partitions)
        self.locked.allow(self.caller.principal, name)
        return name


@pytest.fixture(params=["scram", *(pytest.param(name, marks=pytest.mark.wide) for name in DOORS if name != "scram")])
def door(request: pytest.FixtureRequest, locked: Locked) -> Door:
    return Door(locked, locked.caller(request.param.partition("-")[0]), DOORS[request.param])


@pytest.mark.wide
@pytest.mark.usefixtures("readers")
def test_a_batch_reads_every_row(spark: SparkSession, door: Door, name: str) -> None:
    expected = records(door.topic(name), 0, 60) + records(name, 1, 25)
    write(door.locked.plain, expected)
    assert batch(spark, door.caller.bootstrap, subscribe=name, **door.options(name)) == expected


@pytest.mark.wide
def test_a_stream_reads_every_row_once_over_a_restart(stream: Stream, door: Door, name: str) -> None:
    options: dict[str, Any] = {"subscribe": door.topic(name), "startingOffsets": "earliest", **door.options(name)}
    expected = records(name, 0, 40) + records(name, 1, 12)
    write(door.locked.plain, expected)
    assert stream.run(door.caller.bootstrap, **options) == [52]
    write(door.locked.plain, more := records(name, 0, 9, first=40))
    assert stream.run(door.caller.bootstrap, **options) == [9]
    assert stream.rows() == sorted(expected + more)


@pytest.mark.wide
def test_a_batch_is_written_as_it_is(spark: SparkSession, door: Door, name: str) -> None:
    rows = records(door.topic(name), 0, 40) + records(name, 1, 15)
    frame_of(spark, rows).write.format("kafka").options(**door.sink(name)).save()
    assert stored(door.locked.broker, name, 0, 40) == content(rows[:40])
    assert stored(door.locked.broker, name, 1, 15) == content(rows[40:])


def test_a_stream_copies_from_topic_to_topic(spark: SparkSession, stream: Stream, door: Door, name: str) -> None:
    copy = f"{name}-copy"
    create_topic(door.locked.plain, copy, 2)
    rows = records(door.topic(name), 0, 30) + records(name, 1, 20)
    write(door.locked.plain, rows)
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", door.caller.bootstrap)
    source = {"subscribe": name, "startingOffsets": "earliest", "includeHeaders": "true", **door.options(name)}
    lines = reader.options(**source).load().select("partition", "key", "value", "headers")
    sink = lines.writeStream.format("kafka").options(**door.sink(copy), checkpointLocation=str(stream.checkpoint))
    stream.query = sink.trigger(availableNow=True).start()
    assert stream.query.awaitTermination(120)
    assert stored(door.locked.broker, copy, 0, 30) == content(rows[:30])
    assert stored(door.locked.broker, copy, 1, 20) == content(rows[30:])
    back = spark.read.format("kafka").option("kafka.bootstrap.servers", door.caller.bootstrap)
    copied = seen(back.options(subscribe=copy, includeHeaders="true", **door.options(copy)).load())
    assert content(copied) == content(rows)


def refuses(spark: SparkSession, door: Door, name: str, caller: Caller, rows: list[Seen], why: str) -> None:
    """Neither the source nor the sink of this caller gets anywhere."""
    with pytest.raises(Exception, match=why):
        batch(spark, caller.bootstrap, subscribe=name, **door.options(name, caller))
    with pytest.raises(Exception, match=why):
        frame_of(spark, rows).write.format("kafka").options(**door.sink(name, caller)).save()
    assert end_offset(door.locked.plain, name, 0) == 0


@pytest.mark.wide
def test_another_principal_may_neither_read_nor_write(
    spark: SparkSession, locked: Locked, door: Door, name: str
) -> None:
    rows = records(door.topic(name), 0, 5)
    other = locked.caller("scram" if door.caller.user else "mtls", OTHER_USER)
    refuses(spark, door, name, other, rows, "TopicAuthorizationException")


@pytest.mark.wide
def test_a_wrong_password_ends_reads_and_writes(spark: SparkSession, locked: Locked, name: str) -> None:
    door = Door(locked, locked.caller("scram"), "PEM")
    rows, wrong = records(door.topic(name), 0, 5), door.caller.but(password="wrong")
    refuses(spark, door, name, wrong, rows, "invalid credentials with SASL mechanism SCRAM-SHA-512")


@pytest.mark.wide
def test_a_read_without_a_certificate_ends(spark: SparkSession, locked: Locked, name: str) -> None:
    door = Door(locked, locked.caller("mtls"), "PEM")
    write(locked.plain, records(door.topic(name), 0, 5))
    bare = door.caller.but(certificate="", key="")
    with pytest.raises(Exception, match="SslAuthenticationException"):
        batch(spark, bare.bootstrap, subscribe=name, **door.options(name, bare))
