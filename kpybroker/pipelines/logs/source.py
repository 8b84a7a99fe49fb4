"""The shipper: files of logs to a topic, a record for each event, with headers that say where it is from.

    python -m kpybroker.pipelines.logs.source --bootstrap-servers HOST:PORT --topic logs --follow \\
        --positions /var/lib/shipper.json broker=/var/log/kafka/server.log orders=/var/log/orders.log /var/log/syslog

A file is given with its service, or without one if its lines name theirs. Headers: `host`, `service`, `file`. The key
is host and file, so that the lines of a file are in one partition, in order. Positions are noted when the broker has
acknowledged what is before them: a shipper that is killed sends the lines since then again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.logs.files import Joiner, Place, Tail
from kpybroker.pipelines.runtime import arguments as is_a
from kpybroker.pipelines.runtime.options import check_reachable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

POLL_S = 0.2
SETTLE_S = 1.0
"""An event of a file to which nothing is written for so long has no more lines."""
DELIVERY_SECONDS_MAX = 60.0
_GIVEN = re.compile(r"(?:([\w.-]+)=)?(.+)")


@dataclass(slots=True)
class Source:
    """One file, and where its lines are from."""

    path: Path
    service: str | None
    host: str
    tail: Tail = field(init=False)
    joiner: Joiner = field(default_factory=Joiner)
    changed: float = 0.0

    def __post_init__(self) -> None:
        self.tail = Tail(self.path)

    def events(self, now: float, *, last: bool = False) -> Iterable[str]:
        """What has been written since, as events; the one that may have more lines waits. Raises OSError."""
        more = True
        while more:
            lines = self.tail.read(last=last)
            more = bool(lines)
            self.changed = now if more else self.changed
            for line in lines:
                if (event := self.joiner.push(line)) is not None:
                    yield event
            # a file that was rotated has no more lines
            if self.tail.inode == 0 and (event := self.joiner.end()) is not None:
                yield event
        if (last or now - self.changed >= SETTLE_S) and (event := self.joiner.end()) is not None:
            yield event

    def place(self) -> Place:
        """Where a next run goes on: before the event that is not complete."""
        pending = self.joiner.pending
        return Place(self.tail.inode, self.tail.position if pending is None else pending.position)


class Shipper:
    """Sends the events of `sources` to a topic. `client` are settings of librdkafka. `send` may be called again."""

    def __init__(
        self, client: Mapping[str, str], topic: str, sources: Sequence[Source], positions: Path | None
    ) -> None:
        from confluent_kafka import Producer

        self._producer: Producer = Producer({"linger.ms": 20, "enable.idempotence": True, **client})
        self._topic, self._sources, self._positions = topic, sources, positions
        self._failures: list[str] = []
        self.sent = 0
        if positions is not None and positions.exists():
            noted = json.loads(positions.read_text())
            for source in sources:
                if str(source.path) in noted:
                    source.tail.begin = Place(*noted[str(source.path)])

    def send(self, *, last: bool = False) -> None:
        """Send what has been written since, and note the positions once all of it is acknowledged.

        Raises `PipelineError` where the broker does not take it, and OSError for files that cannot be read.
        """
        before = self.sent
        for source in self._sources:
            for event in source.events(time.monotonic(), last=last):
                self._produce(source, event)
        left = self._producer.flush(DELIVERY_SECONDS_MAX) if self.sent > before else 0
        if left or self._failures:
            reason = self._failures[0] if self._failures else f"no response within {DELIVERY_SECONDS_MAX:.0f} s"
            raise PipelineError(f"{left + len(self._failures)} events were not delivered: {reason}.", AGAIN)
        if self._positions is not None and self.sent > before:
            places = {str(source.path): source.place() for source in self._sources}
            part = self._positions.with_name(f"{self._positions.name}.part")
            part.write_text(json.dumps(places))
            part.replace(self._positions)

    def _produce(self, source: Source, event: str) -> None:
        from confluent_kafka import KafkaException

        headers = {"host": source.host, "file": str(source.path)}
        if source.service is not None:
            headers["service"] = source.service
        key = f"{source.host}:{source.path}"
        while True:
            try:
                self._producer.produce(
                    self._topic, event.encode(), key, headers=list(headers.items()), on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(1.0)
            except KafkaException as error:
                cause = f"An event of {source.path} cannot be sent: {error.args[0].str()}."
                raise PipelineError(cause, "Correct the settings in --client, such as message.max.bytes.") from None
            else:
                self._producer.poll(0)
                self.sent += 1
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(str(error))


AGAIN = "Start it again when the broker responds: with --positions it goes on where it was."


def follow(shipper: Shipper, stop_asked: Callable[[], bool]) -> None:
    """Send until `stop_asked()`, then what is there. Raises what `send` does."""
    while not stop_asked():
        shipper.send()
        time.sleep(POLL_S)
    shipper.send(last=True)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line. Raises `PipelineError`."""
    parser = is_a.Parser(prog="python -m kpybroker.pipelines.logs.source", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--bootstrap-servers", required=True, type=is_a.bootstrap_servers, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True, type=is_a.topic)
    parser.add_argument("--host", default=socket.gethostname(), help="this machine's name (default: its own)")
    parser.add_argument("--follow", action="store_true", help="go on with what is written, until SIGINT or SIGTERM")
    parser.add_argument("--positions", type=Path, metavar="FILE", help="where the next run finds what was sent")
    parser.add_argument(
        "--client", action="append", default=[], type=is_a.pair, metavar="KEY=VALUE", help="setting of librdkafka"
    )
    parser.add_argument("files", nargs="+", metavar="[SERVICE=]FILE")
    options = parser.parse_args(arguments)
    options.sources = [_source(given, options.host) for given in options.files]
    for source in options.sources:
        if not options.follow and not source.path.is_file():
            raise PipelineError(
                f"There is no file {source.path}.", "Correct its name, or wait for it with --follow.", 2
            )
        if source.path.exists() and not os.access(source.path, os.R_OK):
            raise PipelineError(f"{source.path} may not be read.", "Run this as a user who may.", 2)
    return options


def _source(given: str, host: str) -> Source:
    found = _GIVEN.fullmatch(given)
    assert found is not None, given
    return Source(Path(found[2]), found[1], host)


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code: 0 done, 1 failed, 2 a wrong argument."""
    try:
        options = parse(arguments)
        check_reachable(options.bootstrap_servers)
        client = {**dict(options.client), "bootstrap.servers": options.bootstrap_servers}
        shipper = Shipper(client, options.topic, options.sources, options.positions)
        if options.follow:
            received: list[int] = []
            for one in (signal.SIGINT, signal.SIGTERM):
                signal.signal(one, lambda number, _frame: received.append(number))
            follow(shipper, lambda: bool(received))
        else:
            shipper.send(last=True)
    except PipelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except (OSError, ValueError) as error:
        print(PipelineError(f"A file cannot be used: {error}.", "Check the files and --positions."), file=sys.stderr)
        return 1
    print(f"{shipper.sent} events sent to {options.topic}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
