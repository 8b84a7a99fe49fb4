"""A broker's process under a supervisor.

What the supervisor writes to standard input: first one line of JSON, the `Task`, then one order a line (`supervision.
Order`). The end of the input is the end of the supervisor, however it came: the broker stops too. Standard output has
JSON lines for the supervisor alone: the facts when the broker is ready, and `{"event": "retired"}`.

Standard input also because everybody on the machine can read the arguments of a process, and properties have passwords.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.cli import run
from kpybroker.cli.banner import Facts, ready_json
from kpybroker.cli.exit_codes import EXIT_FAILED
from kpybroker.cli.interpreter import garbage
from kpybroker.cli.log_set_up import set_up_logging
from kpybroker.cli.processes.supervision import Order
from kpybroker.config.broker import BrokerConfig
from kpybroker.control.plan import Processes
from kpybroker.control.process.exit_with import exit_after

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted


STDIN: Final = 0
CHUNK_BYTES: Final = 1 << 16


class Task(NamedTuple):
    """What a process is started with.

    `props` are static properties. `brokers`: how many the cluster has, None with a ZooKeeper elsewhere. `credentials`
    admit to the tree, where it is not for everybody. `tree_file` and `tree_socket`, a descriptor, are for the broker
    that keeps it.
    """

    props: Mapping[str, str]
    log_format: str
    log_level: str
    quiet: bool
    brokers: int | None = None
    credentials: str | None = None
    tree_file: str | None = None
    tree_socket: int | None = None

    def line(self) -> bytes:
        """The first line of standard input."""
        return json.dumps(self._asdict()).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Task:
        """The reverse of `line`."""
        return cls(**json.loads(line))

    def processes(self) -> Processes | None:
        """The cluster, for `Hosted`. Call it once: it takes over the socket."""
        if self.brokers is None:
            return None
        listener = None if self.tree_socket is None else socket.socket(fileno=self.tree_socket)
        file = None if self.tree_file is None else Path(self.tree_file)
        return Processes(self.brokers, self.credentials, file, listener)


class _Supervised:
    """The supervisor, as the broker's process sees it (`run.Supervisor`). `orders` are the lines that it writes;
    `is_whole_cluster`: its processes are, so that none hands over what it leads when the supervisor is gone."""

    def __init__(self, orders: Iterator[bytes], is_whole_cluster: bool) -> None:
        self._orders = orders
        self._is_whole_cluster = is_whole_cluster

    def attach(self, hosted: Hosted, stop: Callable[[], None]) -> None:
        """Do what it says from now on, and stop when it ends. Called in the loop."""
        import trio

        token = trio.lowlevel.current_trio_token()

        async def retire() -> None:
            await hosted.retire()
            _say('{"event": "retired"}')

        async def end() -> None:
            if self._is_whole_cluster:
                await hosted.retire()
            stop()

        def end_soon() -> None:
            if hosted.is_ready:
                hosted.spawn(end)
            else:
                stop()

        def tell(function: Callable[..., None], *arguments: object) -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(function, *arguments)

        def obey(order: Order, about: int) -> None:
            match order:
                case Order.RETIRE:
                    hosted.spawn(retire)
                case Order.STOP:
                    stop()
                case Order.ENDED:
                    hosted.forget_broker(about)

        def listen() -> None:
            for line in self._orders:
                word, _, about = line.decode().partition(" ")
                tell(obey, Order(word), int(about or -1))

        exit_after(listen, lambda: tell(end_soon), lambda: None)

    def announce(self, facts: Facts) -> None:
        """Say that the broker is ready."""
        garbage.freeze()
        _say(ready_json(facts))


def run_child() -> int:
    """Run the broker that standard input describes, until it is stopped; the exit code."""
    lines = _lines()
    first = next(lines, None)
    if first is None:  # the supervisor has ended
        return EXIT_FAILED
    task = Task.of(first)
    set_up_logging(task.log_format, task.log_level, task.quiet, task.props.get("broker.id"))
    extras = run.Extras(processes=task.processes(), supervisor=_Supervised(lines, task.brokers is not None))
    return run.run([run.BrokerToRun(BrokerConfig(task.props), ())], extras)


def _lines() -> Iterator[bytes]:
    """Of standard input, without Python's file object: its lock, held by a thread that reads, would abort the exit."""
    unread = b""
    while data := os.read(STDIN, CHUNK_BYTES):
        *lines, unread = (unread + data).split(b"\n")
        yield from lines


def _say(line: str) -> None:
    with suppress(OSError):  # the supervisor has ended, which `attach` notices
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
