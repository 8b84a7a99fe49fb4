"""`topic consume`: records to standard output, from chosen offsets or as a member of a group.

Without a group, partitions are assigned with the offsets to begin and to stop at (`PartitionRange`). With one, the
group assigns them, and what was printed and flushed is committed: when the reader of a pipe goes away, the next member
gets the rest. Once the cluster has responded, the command waits for a broker that goes away; before, it gives up.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kpybroker.client.actions.interrupts import Interrupts
from kpybroker.client.actions.partitions import (
    Place,
    bounds,
    parse_partitions,
    time_lookup,
    topics,
)
from kpybroker.client.actions.queues.consume import QueueOptions, ShareReader
from kpybroker.client.actions.schemas import Decoder, values_of
from kpybroker.client.actions.topics import is_pattern, matched
from kpybroker.client.connect.admin import Cluster, ErrorWatch, make
from kpybroker.client.connect.errors import CommandError, Failures, kafka_error, note, usage
from kpybroker.client.connect.settings import CLIENT_ID, Connection, Settings, load
from kpybroker.client.records.exact import Exact
from kpybroker.client.records.offsets import FORMS, BadOffset, Bounds, Position, Span, parse_span, resolve, within
from kpybroker.client.records.output import writer
from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate, Part
from kpybroker.client.show.output import writing
from kpybroker.system.processes import reader_has_gone

BATCH_RECORDS: Final = 500
POLL_S: Final = 0.1
CLOSE_S_MAX: Final = 5.0
END_WAIT_MS: Final = 20
"""How long a broker may wait for more records at the end of a partition, before it says that it is the end."""
END_OF_PARTITION: Final = "_PARTITION_EOF"
CONNECTION_ERRORS: Final = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT"})
OF_NO_GROUP: Final = frozenset({"GROUP_AUTHORIZATION_FAILED"})
"""librdkafka looks for the coordinator of a group that reading does not use, so a user need not be allowed one."""


class ConsumeOptions(NamedTuple):
    """What `topic consume` is asked for."""

    topics: Sequence[str]
    offset: str = "start"
    num: int | None = None
    exit_at_end: bool = False
    partitions: Sequence[str] = ()
    group: str | None = None
    format_name: str = "value"
    show_null: bool = False
    schema_registry: str | None = None
    decode: str | None = None
    share_group: str | None = None
    ack: str = "accept"


class PartitionRange(NamedTuple):
    """A partition without a group: records below `first` are left out, and `stop` is the first that is not wanted."""

    fetch_from: int
    first: int
    stop: int | None


def consume(connection: Connection, options: ConsumeOptions) -> int:
    """Print records until there are enough, the end, Ctrl-C or a reader that has gone; the exit code."""
    try:
        write = writer(options.format_name, options.show_null, is_terminal=sys.stdout.isatty())
        span = parse_span(options.offset, time.time_ns() // 1_000_000)
    except BadTemplate as error:
        raise usage(str(error), "kpybroker topic consume --help has the formats") from None
    except BadOffset as error:
        raise usage(str(error), f"write -o {FORMS}, or a range of two") from None
    parse_partitions(options.partitions)  # before anything is asked
    if options.share_group is not None:
        _check_queue(options)
    settings = load(connection._replace(registry=options.schema_registry))
    decode = None
    if options.decode is not None or options.schema_registry is not None:
        decode = Decoder(values_of(settings), options.decode or "value")
    if any(is_pattern(name) for name in options.topics):
        options = options._replace(topics=matched(Cluster(settings), options.topics))
    interrupts = Interrupts()
    reader: Reader | ShareReader
    if options.share_group is not None:
        queue = QueueOptions(options.share_group, options.topics, options.ack, options.exit_at_end)
        reader = ShareReader(settings, queue, interrupts)
    elif options.group is None:
        reader = PlannedReader(settings, plans(settings, options, span), options.exit_at_end)
    else:
        reader = GroupReader(settings, options, span)
    return max(_Session(reader, write, decode, options.num).run(interrupts), reader.exit_code())


def _check_queue(options: ConsumeOptions) -> None:
    """Raises CommandError for options that a share group has no use for."""
    if options.group is not None:
        raise usage("-g and --share-group name different kinds of groups", "leave out one of them")
    if options.partitions:
        raise usage("-p names partitions, which a group assigns by itself", "leave out -p or --share-group")
    if options.offset != "start":
        where = f"kpybroker config set group {options.share_group} share.auto.offset.reset=earliest"
        raise usage(f"-o {options.offset} cannot be used with a share group, which has its own start", where)


# --- where to begin and to stop


def plans(settings: Settings, options: ConsumeOptions, span: Span) -> dict[Place, PartitionRange]:
    """The partitions of the topics with their offsets. Raises CommandError."""
    cluster = Cluster(settings)
    places = _places(cluster, options)
    is_committed = settings.properties.get("isolation.level", "read_committed") == "read_committed"
    usable: dict[Place, Bounds] = {}
    for place, found in bounds(cluster, places, committed_only=is_committed).items():
        if isinstance(found, CommandError):
            raise CommandError(f"{place[0]}-{place[1]}: {found.cause}", found.fix)
        usable[place] = found
    at_time = time_lookup(cluster, usable)

    def offset(place: Place, position: Position) -> int:
        return resolve(position, usable[place], lambda timestamp: at_time(place, timestamp))

    made = {}
    for place, found in usable.items():
        first = offset(place, span.begin)
        stop = found.end if options.exit_at_end else None
        if span.end is not None:
            stop = min(offset(place, span.end), found.end)  # a range does not wait for records
        made[place] = PartitionRange(within(first, found), first, stop)
    return made


def _places(cluster: Cluster, options: ConsumeOptions) -> list[Place]:
    failures = Failures()
    found = topics(cluster, options.topics, failures)
    if failures.exit_code():
        raise SystemExit(failures.exit_code())
    wanted = parse_partitions(options.partitions)
    places = []
    for topic in found:
        missing = sorted(set(wanted) - {partition.number for partition in topic.partitions})
        if missing:
            raise usage(f"topic {topic.name} has no partition {missing[0]}", "kpybroker topic describe shows them")
        for partition in topic.partitions:
            if wanted and partition.number not in wanted:
                continue
            if partition.leader is None:
                fix = "bring its replicas back: kpybroker cluster health shows them; -p leaves this partition out"
                raise CommandError(f"partition {partition.number} of {topic.name} has no leader", fix)
            places.append(partition.place)
    return places


# --- readers


class Reader:
    """A consumer that knows which messages are wanted, and when it has them all."""

    passing = CONNECTION_ERRORS
    """Errors of a message's kind that end nothing."""

    def __init__(self, settings: Settings, **keys: Any) -> None:
        self.watch = ErrorWatch()
        self.consumer: Any = make(Consumer, settings, self.watch, enable_partition_eof=True, **keys)
        self.exact = Exact(settings)
        self.is_done = False
        self.has_responded = False

    def read(self, count: int) -> list[Any]:
        """The next messages that are wanted. Raises CommandError."""
        wanted = []
        for message in self.consumer.consume(num_messages=count, timeout=POLL_S):
            error = message.error()
            if error is None:
                self.has_responded = True
                if self.accepts(message):
                    wanted.append(message)
            elif error.name() == END_OF_PARTITION:
                self.has_responded = True
                self.at_end((message.topic(), message.partition()), message.offset())
            elif error.name() not in self.passing:
                raise kafka_error(error)
        if not wanted and not self.has_responded:
            self.watch.check()
        return wanted

    def accepts(self, message: Any) -> bool:
        """Whether this message is to be printed."""
        raise NotImplementedError

    def at_end(self, place: Place, offset: int) -> None:
        """Everything of this partition was read, up to `offset`."""
        raise NotImplementedError

    def printed(self, messages: Sequence[Any]) -> None:
        """These were written and flushed."""

    def left(self, done: Mapping[Place, int]) -> int:
        """How many offsets are between these and the ends, as far as they are known without asking."""
        ends = {}
        for place in done:
            _, ends[place] = self.consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
        return sum(max(0, ends[place] - offset) for place, offset in done.items())

    def record(self, message: Any) -> Record:
        """What is printed of it."""
        return self.exact.record(message)

    def exit_code(self) -> int:
        """Nothing of this fails without ending the command."""
        return 0

    def close(self) -> None:
        """Commit, leave, disconnect. librdkafka waits for a broker that is away as long as a session lasts."""
        self.exact.close()
        closing = threading.Thread(target=self.consumer.close, daemon=True)
        closing.start()
        closing.join(CLOSE_S_MAX)
        if closing.is_alive():
            note("the cluster does not respond: what was printed last may be read again by the group")


def _end_wait(settings: Settings) -> dict[str, int]:
    """For a reader that stops at an end; what `settings` say goes before."""
    return {} if "fetch.wait.max.ms" in settings.properties else {"fetch_wait_max_ms": END_WAIT_MS}


class PlannedReader(Reader):
    """Reads partitions that it assigns itself."""

    passing = CONNECTION_ERRORS | OF_NO_GROUP

    def __init__(self, settings: Settings, planned: dict[Place, PartitionRange], exit_at_end: bool) -> None:
        # librdkafka wants a group id even where none is used
        keys = {} if all(plan.stop is None for plan in planned.values()) else _end_wait(settings)
        super().__init__(settings, group_id=CLIENT_ID, enable_auto_commit=False, auto_offset_reset="earliest", **keys)
        self._exit_at_end = exit_at_end
        self._open = {
            place: plan for place, plan in planned.items() if plan.stop is None or plan.fetch_from < plan.stop
        }
        self.is_done = not self._open
        self.consumer.assign([TopicPartition(*place, plan.fetch_from) for place, plan in self._open.items()])

    def accepts(self, message: Any) -> bool:
        """Within its partition's plan; one at or after the stop ends the partition."""
        place, offset = (message.topic(), message.partition()), message.offset()
        plan = self._open.get(place)
        if plan is None:
            return False
        if plan.stop is not None and offset >= plan.stop - 1:
            self._finish(place)
        return offset >= plan.first and (plan.stop is None or offset < plan.stop)

    def at_end(self, place: Place, offset: int) -> None:
        """Control records and compaction leave gaps, so the last wanted offset may have no record."""
        plan = self._open.get(place)
        if plan is not None and plan.stop is not None and (self._exit_at_end or offset >= plan.stop):
            self._finish(place)

    def _finish(self, place: Place) -> None:
        del self._open[place]
        self.is_done = not self._open
        self.consumer.incremental_unassign([TopicPartition(*place)])


class GroupReader(Reader):
    """A member of a group."""

    def __init__(self, settings: Settings, options: ConsumeOptions, span: Span, **keys: Any) -> None:
        """`keys` are librdkafka's, with `_` for `.`, and win."""
        if options.partitions:
            raise usage("-p names partitions, which a group assigns by itself", "leave out -p or -g")
        if span.end is not None or span.begin.kind not in ("start", "end"):
            raise usage(
                f"-o {options.offset} cannot be used with a group, which continues where it was",
                "use -o start or -o end, for partitions without a committed offset; kpybroker group seek moves a group",
            )
        reset = "earliest" if span.begin.kind == "start" else "latest"
        own: dict[str, Any] = {"enable_auto_commit": True, "enable_auto_offset_store": False}
        if options.exit_at_end:
            own |= _end_wait(settings)
        super().__init__(settings, group_id=options.group, auto_offset_reset=reset, **{**own, **keys})
        self._exit_at_end = options.exit_at_end
        self._left: set[Place] | None = None
        self.consumer.subscribe(list(options.topics), on_assign=self._assigned)

    def _assigned(self, consumer: Any, parts: Sequence[Any]) -> None:
        self.has_responded = True
        self._left = {(part.topic, part.partition) for part in parts}
        self.is_done = self._exit_at_end and not self._left

    def accepts(self, message: Any) -> bool:
        """All of them."""
        return True

    def at_end(self, place: Place, offset: int) -> None:
        """With -e, the end of every assigned partition is the end."""
        if self._exit_at_end and self._left is not None:
            self._left.discard(place)
            self.is_done = not self._left

    def printed(self, messages: Sequence[Any]) -> None:
        """Their offsets are committed in the background, and when the consumer is closed."""
        last = {(message.topic(), message.partition()): message.offset() + 1 for message in messages}
        try:
            self.consumer.store_offsets(offsets=[TopicPartition(*place, offset) for place, offset in last.items()])
        except KafkaException:
            pass  # the group has taken the partition away; its next member prints these again


# --- the loop


class _Session:
    """From a reader to standard output."""

    def __init__(self, reader: Reader | ShareReader, write: Part, decode: Decoder | None, limit: int | None) -> None:
        self._reader = reader
        self._write = write
        self._decode = decode
        self._limit = limit
        self._count: Counter[Place] = Counter()
        self._number = 0
        self._out = sys.stdout.buffer

    def run(self, interrupts: Interrupts) -> int:
        try:
            with interrupts:
                self._loop(interrupts)
        finally:
            self._reader.close()
        if interrupts.requested:
            note(self._summary())
        return 0 if self._decode is None else self._decode.finish()

    def _loop(self, interrupts: Interrupts) -> None:
        while not (interrupts.requested or self._is_complete()):
            left = BATCH_RECORDS if self._limit is None else min(BATCH_RECORDS, self._limit - self._number)
            messages = self._reader.read(left)
            if messages:
                self._print(messages)
                self._reader.printed(messages)
            elif reader_has_gone(sys.stdout):
                raise BrokenPipeError

    def _is_complete(self) -> bool:
        return self._number == self._limit or self._reader.is_done

    def _print(self, messages: Sequence[Any]) -> None:
        with writing():
            for message in messages:
                record = self._reader.record(message)
                self._count[str(record.topic), record.partition or 0] += 1
                if self._decode is not None:
                    record = self._decode(record)
                self._out.write(self._write(record, self._number))
                self._number += 1
            self._out.flush()

    def _summary(self) -> str:
        if not self._count:
            return "0 records"
        names = {topic for topic, _ in self._count}
        parts = f"{len(self._count)} partition{'s' if len(self._count) > 1 else ''}"
        return f"{self._number} record{'s' if self._number > 1 else ''} from {parts} of {', '.join(sorted(names))}"
