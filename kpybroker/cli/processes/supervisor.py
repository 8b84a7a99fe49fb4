"""The supervisor: processes and signals around `Supervision`.

It has no broker and no tree, only the socket at which the first broker serves the tree to the others: so its port is
the same in each life of that broker, and connections wait in it while that broker is down.

A first signal stops all in order, a second one ends all at once. Each process reads its standard input and stops when
that ends, so none outlives a supervisor that is killed.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import trio

from kpybroker import __version__
from kpybroker.broker.lifecycle.errors import EXIT_PORT
from kpybroker.cli import run
from kpybroker.cli.banner import Address, Facts, Node, bootstrap_servers, reachable
from kpybroker.cli.exit_codes import fail
from kpybroker.cli.health.notify import STOPPING, notify
from kpybroker.cli.processes.child import Task
from kpybroker.cli.processes.derive import METRICS_PORT, TREE_HOST, TREE_PORT, connected, serving
from kpybroker.cli.processes.supervision import Action, Announce, Restart, Start, Supervision, Tell
from kpybroker.config.broker import BrokerConfig
from kpybroker.control.process import ephemeral
from kpybroker.control.process.exit_with import exit_after
from kpybroker.system.processes import OWN_SESSION, wait_for_end_of
from kpybroker.system.sockets import PASSES_SOCKETS, listening

if TYPE_CHECKING:
    from kpybroker.cli.children.child import Children

logger = logging.getLogger("kafka.server.KafkaServer")

DEFAULTS: Final = {"leader.imbalance.check.interval.seconds": "10"}
"""Of a cluster that is all here, where Kafka has 300: one that starts, or starts again, finds its leaders on the broker
that was up first, and the others idle until leaders are where they should be."""
EVENTS_MAX: Final = inf
"""Events and orders wait in queues without a bound: each process makes a few in its life."""
SECRET_BYTES: Final = 32
LINE_BYTES_MAX: Final = 1 << 20


class Family(NamedTuple):
    """The brokers to run, each by its properties, and what is the same for all.

    `tree_file`: of the first broker, where it is not in a log directory. `directory` is removed at the end, `clients`
    makes the banner's lines for an address.
    """

    members: Sequence[Mapping[str, str]]
    log_format: str
    log_level: str
    quiet: bool
    tree_file: Path | None = None
    temporary: str | None = None
    exit_with: int | None = None
    clients: Callable[[str], Sequence[str]] | None = None
    children: Children | None = None


def supervise(family: Family) -> int:
    """Run them until they are stopped; the exit code."""
    supervisor = _Supervisor(family)
    try:
        trio.run(supervisor.run)
    finally:
        supervisor.close()
    return supervisor.exit_code


class _Supervisor:
    def __init__(self, family: Family) -> None:
        self._family = family
        self._configs = {config.get_int("broker.id"): config for config in map(BrokerConfig, family.members)}
        first = next(iter(self._configs.values()))
        self._has_tree = not first.get_str("zookeeper.connect")
        self._is_tree_shown = first.get(TREE_PORT) is not None
        self._tree_socket = _tree_socket(first) if self._has_tree else None
        self._tasks = self._make_tasks()
        self._machine = Supervision(list(self._configs), next(iter(self._configs)) if self._has_tree else None)
        self._events, self._next_events = trio.open_memory_channel[Callable[[], list[Action]]](EVENTS_MAX)
        self._orders: dict[int, trio.MemorySendChannel[bytes]] = {}
        self._running: dict[int, trio.Process] = {}
        self._said: dict[int, dict[str, Any]] = {}  # when it was ready
        self._is_stopping = False
        self.exit_code = 0

    def close(self) -> None:
        if self._tree_socket is not None:
            self._tree_socket.close()

    def _make_tasks(self) -> dict[int, Task]:
        family, made = self._family, {}
        how = (family.log_format, family.log_level, family.quiet)
        credentials = None if self._is_tree_shown else f"kpybroker:{secrets.token_hex(SECRET_BYTES)}"
        for number, (broker_id, config) in enumerate(self._configs.items()):
            props = dict(config.static)
            if self._tree_socket is None:
                made[broker_id] = Task(props, *how)
                continue
            host, port = self._tree_socket.getsockname()[:2]
            props = DEFAULTS | props
            if number:
                props = connected(props, reachable(Address("", host, port)))
                made[broker_id] = Task(props, *how, len(self._configs), credentials)
                continue
            props = serving(props, host, port)
            passed = self._tree_socket.fileno() if PASSES_SOCKETS else None
            file = None if family.tree_file is None else str(family.tree_file)
            made[broker_id] = Task(props, *how, len(self._configs), credentials, file, passed)
        if not PASSES_SOCKETS:
            self.close()
        return made

    async def run(self) -> None:
        self._handle_signals()
        async with trio.open_nursery() as nursery:
            try:
                await self._loop(nursery)
            finally:
                for process in self._running.values():
                    process.kill()
                nursery.cancel_scope.cancel()

    async def _loop(self, nursery: trio.Nursery) -> None:
        actions = self._machine.timer(trio.current_time())
        while True:
            for action in actions:
                self._act(action, nursery)
            code = self._machine.exit_code
            if code is not None:
                self.exit_code = code
                return
            deadline = self._machine.deadline
            with trio.move_on_at(inf if deadline is None else deadline) as scope:
                event = await self._next_events.receive()
                actions = event()
            if scope.cancelled_caught:
                actions = self._machine.timer(trio.current_time())

    def _act(self, action: Action, nursery: trio.Nursery) -> None:
        match action:
            case Start(broker_id):
                nursery.start_soon(self._run_process, broker_id)
            case Tell(broker_id, order, about):
                line = order.value if about is None else f"{order.value} {about}"
                with suppress(KeyError, trio.BrokenResourceError):  # it has just ended
                    self._orders[broker_id].send_nowait(f"{line}\n".encode())
            case Announce():
                self._announce(nursery)
            case Restart(broker_id, code, delay_s):
                when = f"in {delay_s:g} s" if delay_s else "now"
                logger.warning("Broker %d has ended %s: it is started again %s", broker_id, _end(code), when)

    # --- one process

    async def _run_process(self, broker_id: int) -> None:
        machine, task = self._machine, self._tasks[broker_id]
        self._orders[broker_id], orders = trio.open_memory_channel[bytes](EVENTS_MAX)
        passed: dict[str, Any] = {} if task.tree_socket is None else {"pass_fds": (task.tree_socket,)}
        environment = {key: value for key, value in os.environ.items() if key != "NOTIFY_SOCKET"}
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "kpybroker", "server", "--supervised", str(broker_id)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            **OWN_SESSION,
            **passed,
        )
        self._running[broker_id] = process
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_write, process, task.line(), orders)
            nursery.start_soon(self._read, broker_id, process)
            code = await process.wait()  # not the end of its output, which processes that it has started hold open
            nursery.cancel_scope.cancel()
        del self._running[broker_id], self._orders[broker_id]
        await _close(process)
        self._put(lambda: machine.ended(broker_id, code, trio.current_time()))

    async def _read(self, broker_id: int, process: trio.Process) -> None:
        assert process.stdout is not None
        unread = b""
        while data := await process.stdout.receive_some():
            *lines, unread = (unread + data).split(b"\n")
            assert len(unread) < LINE_BYTES_MAX, "a broker says things that are not for its supervisor"
            for line in lines:
                self._hear(broker_id, json.loads(line))

    def _hear(self, broker_id: int, said: dict[str, Any]) -> None:
        machine = self._machine
        if said["event"] == "ready":
            if broker_id in self._said:
                logger.info("Broker %d is ready again", broker_id)
            self._said[broker_id] = said
            self._tasks[broker_id] = pinned(self._tasks[broker_id], said)
            self._put(lambda: machine.ready(broker_id, trio.current_time()))
        else:
            self._put(lambda: machine.retired(broker_id))

    def _put(self, event: Callable[[], list[Action]]) -> None:
        self._events.send_nowait(event)

    # --- all of them

    def _announce(self, nursery: trio.Nursery) -> None:
        facts = self._facts()
        if (children := self._family.children) is not None:
            facts = facts._replace(console=children.console, registry=children.registry)
            children.start(nursery, bootstrap_servers(facts.nodes), None)
        run.announce(facts, to_a_person=self._family.exit_with is None)

    def _facts(self) -> Facts:
        said = [self._said[broker_id] for broker_id in self._configs]
        config = next(iter(self._configs.values()))
        nodes = [_node(one) for one in said]
        show = self._family.clients or (lambda at: run.secured_clients(config, at))
        tree = None if self._tree_socket is None else self._tasks[nodes[0].node_id].props
        return Facts(
            nodes=nodes,
            cluster_id=said[0]["clusterId"],
            version=__version__,
            log_dirs=[directory for one in said for directory in one["logDirs"]],
            coordination=self._coordination(config, nodes[0].node_id),
            ephemeral=self._family.temporary is not None,
            fsync_each=config.get_int("log.flush.interval.messages") == 1,
            clients=show(bootstrap_servers(nodes)),
            metrics=[url for one in said for url in one["metrics"]],
            zookeeper=None
            if tree is None or not self._is_tree_shown
            else reachable(Address("", tree[TREE_HOST], int(tree[TREE_PORT]))),
        )

    def _coordination(self, config: BrokerConfig, first_id: int) -> str:
        if not self._has_tree:
            return f"ZooKeeper at {config.get_str('zookeeper.connect')}"
        return f"embedded, kept by broker {first_id}"

    # --- signals

    def _handle_signals(self) -> None:
        token = trio.lowlevel.current_trio_token()

        def stop() -> None:
            notify(STOPPING)
            self._is_stopping = True
            self._put(lambda: self._machine.stop(trio.current_time()))

        def stop_soon() -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(stop)

        def on_signal(number: int, _: FrameType | None) -> None:
            if self._is_stopping:
                self._end_now()
                os._exit(128 + number)
            self._is_stopping = True
            stop_soon()

        for number in run.STOP_SIGNALS:
            signal.signal(number, on_signal)
        if run.HANG_UP is not None and signal.getsignal(run.HANG_UP) is not signal.SIG_IGN:
            signal.signal(run.HANG_UP, on_signal)
        for number in run.REPORT_SIGNALS:
            signal.signal(number, lambda number, _: self._pass_on(number))
        if self._family.exit_with is not None:
            pid = self._family.exit_with
            exit_after(lambda: wait_for_end_of(pid), stop_soon, self._end_now)

    def _pass_on(self, number: int) -> None:
        for process in list(self._running.values()):
            with suppress(OSError):
                process.send_signal(number)

    def _end_now(self) -> None:
        for process in list(self._running.values()):
            with suppress(OSError):
                process.kill()
        if self._family.temporary is not None:
            ephemeral.remove(self._family.temporary)


def _tree_socket(config: BrokerConfig) -> socket.socket:
    host, port = config.get_str(TREE_HOST), config.get_optional_int(TREE_PORT) or 0
    try:
        return listening(host, port)
    except OSError as error:
        fail(
            f"the tree cannot be served at {host}:{port}: {error.strerror or error}",
            "change kpybroker.zookeeper.port (--zookeeper-port of dev; 0 takes a free one) or kpybroker.zookeeper.host",
            EXIT_PORT,
        )


async def _write(process: trio.Process, first: bytes, orders: trio.MemoryReceiveChannel[bytes]) -> None:
    assert process.stdin is not None
    with suppress(trio.BrokenResourceError):  # its end is noticed by `wait`
        await process.stdin.send_all(first)
        async for line in orders:
            await process.stdin.send_all(line)


async def _close(process: trio.Process) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdin.aclose()
    await process.stdout.aclose()


def pinned(task: Task, said: Mapping[str, Any]) -> Task:
    """The task of the broker's next lives, with the ports that it took in this one where it was free to choose."""
    (broker,) = said["brokers"]
    config = BrokerConfig(task.props)
    bound = {name: Address.of(name, text).port for name, text in broker["listeners"].items()}
    own = {"listeners": ",".join(str(one._replace(port=bound[one.listener_name])) for one in config.listeners)}
    for url in said["metrics"]:
        own[METRICS_PORT] = str(urlsplit(url).port)
    return task._replace(props={**task.props, **own})


def _node(said: Mapping[str, Any]) -> Node:
    (broker,) = said["brokers"]
    return Node(
        broker["nodeId"], [Address.of(name, text) for name, text in broker["listeners"].items()], pid=said["pid"]
    )


def _end(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    with suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"
