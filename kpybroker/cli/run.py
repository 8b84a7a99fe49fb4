"""Runs a broker, or a development cluster of them, until it is stopped: configuration in, exit code out.

Whatever prevents the start is two lines on standard error, `kpybroker: <cause>` and `fix: <what to do>` (with
`--log-format json` one object), and one of the codes in `exit_codes`. A first SIGTERM, SIGINT or SIGHUP stops the
broker in order; a second one ends the process at once. SIGUSR1 logs how long the loop was blocked since the last one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from kpybroker import __version__
from kpybroker.cli.banner import Address, Facts, Node, bootstrap_servers, reachable, ready_json, ready_line, show
from kpybroker.cli.exit_codes import EXIT_CONFIG, EXIT_FAILED, EXIT_OK, fail
from kpybroker.cli.health import exposure
from kpybroker.cli.health.notify import STOPPING, notify, ready
from kpybroker.cli.interpreter import garbage
from kpybroker.cli.log_set_up import LogSettingError, apply_settings
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.fix import fix_for
from kpybroker.config.interpret import Note, forwarded_ports, interpret
from kpybroker.config.values import ConfigError
from kpybroker.control.log_formats import is_json
from kpybroker.control.process import ephemeral
from kpybroker.system.processes import one_heap_for_all_threads

if TYPE_CHECKING:
    import trio

    from kpybroker.broker.app import Broker
    from kpybroker.cli.children.child import Children
    from kpybroker.control.hosted import Hosted
    from kpybroker.control.plan import Processes

config_log = logging.getLogger("kafka.server.KafkaConfig")
server_log = logging.getLogger("kafka.server.KafkaServer")

STOP_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGBREAK")
    if hasattr(signal, name)  # BREAK: on Windows
)
HANG_UP = getattr(signal, "SIGHUP", None)  # not on Windows
REPORT_SIGNALS = tuple(getattr(signal, name) for name in ("SIGUSR1",) if hasattr(signal, name))  # not on Windows


class BrokerToRun(NamedTuple):
    """A broker to run. `temporary`: the directory that is removed at the end."""

    config: BrokerConfig
    notes: Sequence[Note]
    temporary: str | None = None


def plan(props: Mapping[str, str], source: str, temporary: str | None = None, *, alone: bool = True) -> BrokerToRun:
    """Check the keys that the user gave; `source` says where, for the error. Ends the process if one is bad.

    `alone`: no other broker is started with this one.
    """
    try:
        interpreted = interpret(props, alone=alone)
        config = BrokerConfig(interpreted.props)
        forwarded = forwarded_ports(config.listeners, config.advertised_listeners)
        return BrokerToRun(config, [*interpreted.notes, *forwarded], temporary)
    except ConfigError as error:
        fail(f"{error} ({source})", fix_for(error), EXIT_CONFIG)


class Supervisor(Protocol):
    """The process that has started this one, one of several (`kpybroker.cli.processes`)."""

    def attach(self, hosted: Hosted, stop: Callable[[], None]) -> None:
        """Do what it says from now on."""

    def announce(self, facts: Facts) -> None:
        """Say that the broker is ready, in place of the ready line."""


class Extras(NamedTuple):
    """What `dev` adds: a directory for files that belong to no single broker of them, the port of the control channel,
    the id of a process to end with, what makes the banner's lines on clients for an address, and what runs next to it.
    And, where this is one of several processes, the cluster and the supervisor."""

    directory: str = ""
    control_port: int | None = None
    exit_with: int | None = None
    clients: Callable[[str], Sequence[str]] | None = None
    children: Children | None = None
    processes: Processes | None = None
    supervisor: Supervisor | None = None


NO_EXTRAS = Extras()


def run(plans: Sequence[BrokerToRun], extras: Extras = NO_EXTRAS) -> int:
    """Run one broker, or a cluster of a few, until stopped; the exit code."""
    import trio

    from kpybroker.broker.lifecycle.errors import StartupError

    one_heap_for_all_threads()
    try:
        apply_settings(plans[0].config)
    except LogSettingError as error:
        fail(str(error), error.fix, EXIT_CONFIG)
    log_notes(plans[0])
    _warn_of_exposure(plans, extras)
    try:
        trio.run(_serve, plans, extras)
    except StartupError as error:
        fail(error.cause, error.fix, error.exit_code)
    except Exception as error:
        only = _the_only(error)
        if isinstance(only, StartupError):
            fail(only.cause, only.fix, only.exit_code)
        config_log.critical("The broker ended with an unexpected failure", exc_info=error)
        fail(
            f"unexpected failure: {type(only).__name__}: {only}",
            "restart it; if it happens again, report it with the log lines above",
            EXIT_FAILED,
        )
    return EXIT_OK


def _warn_of_exposure(plans: Sequence[BrokerToRun], extras: Extras) -> None:
    from kpybroker.broker.lifecycle.open_tree import EMBEDDED_TREE_FILE

    tree = [Path(extras.directory) / EMBEDDED_TREE_FILE]
    shown = dict.fromkeys(path for one in plans for path in exposure.of_broker(one.config, tree))
    exposure.warn(shown)


def log_notes(wanted: BrokerToRun) -> None:
    """Say what the configuration has that has no effect, or another one than in Kafka."""
    for note in wanted.notes:
        config_log.log(logging.WARNING if note.serious else logging.INFO, "%s", note.text)


def _the_only(error: BaseException) -> BaseException:
    """The one exception inside groups of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _serve(plans: Sequence[BrokerToRun], extras: Extras) -> None:
    import trio

    from kpybroker.control.hosted import Hosted
    from kpybroker.control.plan import BrokerPlan

    hosted = Hosted([BrokerPlan.of(plan.config) for plan in plans], Path(extras.directory), extras.processes)
    async with trio.open_nursery() as nursery:
        stop = _stop_on_signals(hosted, nursery.cancel_scope, plans[0].temporary)
        if extras.supervisor is not None:
            extras.supervisor.attach(hosted, stop)
        if extras.exit_with is not None:
            _exit_with(extras.exit_with, stop, plans[0].temporary)
        nursery.start_soon(garbage.collect)
        nursery.start_soon(garbage.give_back)
        if REPORT_SIGNALS:
            await nursery.start(_report_on_signals, hosted)
        control = None
        if extras.control_port is not None:
            from kpybroker.control.start import open_channel

            control = await nursery.start(open_channel, hosted, extras.control_port)

        async def on_ready() -> None:
            facts = _facts(list(hosted.brokers.values()), plans[0], control)
            show = extras.clients or partial(secured_clients, plans[0].config)
            facts = facts._replace(clients=show(bootstrap_servers(facts.nodes)))
            if hosted.tree_address is not None:
                facts = facts._replace(zookeeper=reachable(Address("", *hosted.tree_address)))
            if extras.children is not None:
                facts = facts._replace(console=extras.children.console, registry=extras.children.registry)
                extras.children.start(nursery, bootstrap_servers(facts.nodes), facts.control)
            if extras.supervisor is not None:
                extras.supervisor.announce(facts)
            else:
                announce(facts, to_a_person=extras.exit_with is None)

        await hosted.run(on_ready)
        nursery.cancel_scope.cancel()
    if hosted.fatal is not None:
        raise hosted.fatal


def secured_clients(config: BrokerConfig, at: str) -> Sequence[str]:
    """For the operator of a listener with TLS or logins; none for a plain one."""
    if config.listeners[0].security_protocol == "PLAINTEXT":
        return ()
    from kpybroker.cli.secured_clients import lines

    return lines(config, at)


def _exit_with(pid: int, stop: Callable[[], None], temporary: str | None) -> None:
    from kpybroker.control.process.exit_with import exit_with

    exit_with(pid, stop, lambda: ephemeral.remove(temporary) if temporary is not None else None)


def end_on_sigterm() -> None:
    """Until the broker has its own handling of signals, let SIGTERM end the process as Ctrl-C does, cleaning up."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _stop_on_signals(hosted: Hosted, start: trio.CancelScope, temporary: str | None) -> Callable[[], None]:
    """The first signal stops the loop; the second ends the process without it, since the loop may be stuck.

    What is returned stops the loop too, called in any thread.

    The handlers stay until the process ends, since there is work after the loop too. (The system's own handling would
    do nothing to process 1 of a container.) SIGHUP is left alone where it is ignored, as under nohup.
    """
    import trio

    token = trio.lowlevel.current_trio_token()
    is_stopping = False

    def stop() -> None:
        notify(STOPPING)
        if hosted.is_ready:
            hosted.stop()
        else:
            server_log.info("Stopped before the start was complete")
            start.cancel()

    def stop_soon() -> None:
        with suppress(trio.RunFinishedError):  # the loop has ended
            token.run_sync_soon(stop)

    def on_signal(number: int, _: FrameType | None) -> None:
        nonlocal is_stopping
        if is_stopping:
            if temporary is not None:
                ephemeral.remove(temporary)
            os._exit(128 + number)
        is_stopping = True
        stop_soon()

    for number in STOP_SIGNALS:
        signal.signal(number, on_signal)
    if HANG_UP is not None and signal.getsignal(HANG_UP) is not signal.SIG_IGN:
        signal.signal(HANG_UP, on_signal)
    return stop_soon


async def _report_on_signals(hosted: Hosted, *, task_status: trio.TaskStatus[None]) -> None:
    import trio

    with trio.open_signal_receiver(*REPORT_SIGNALS) as signals:
        task_status.started()
        async for _ in signals:
            _report(hosted)


def _report(hosted: Hosted) -> None:
    """The loop's stalls since the last report; `make bench` requests them."""
    for broker in hosted.brokers.values():
        server_log.info("[KafkaServer id=%d] %s", broker.node_id, broker.stall.describe())
        broker.stall.reset()


def announce(facts: Facts, *, to_a_person: bool) -> None:
    """Say that they are ready: the ready line on standard output, and to a person the banner on standard error."""
    garbage.freeze()
    try:
        sys.stdout.write(f"{ready_json(facts) if is_json() else ready_line(facts)}\n")
        sys.stdout.flush()
    except OSError as error:
        config_log.warning("The ready line could not be printed: %s", error)
    notify(ready(str(facts.nodes[0].addresses[0])))
    if to_a_person and not is_json():
        with suppress(OSError):
            show(facts)


def _facts(brokers: Sequence[Broker], wanted: BrokerToRun, control: tuple[str, int] | None) -> Facts:
    connect = wanted.config.get_str("zookeeper.connect")
    return Facts(
        nodes=[
            Node(one.node_id, [Address(bound.name, *bound.listener.address[:2]) for bound in one.bound])
            for one in brokers
        ],
        cluster_id=brokers[0].cluster_id,
        version=__version__,
        log_dirs=[directory for one in brokers for directory in one.logs.dirs.configured],
        coordination=f"ZooKeeper at {connect}" if connect else _embedded(brokers),
        ephemeral=wanted.temporary is not None,
        fsync_each=wanted.config.get_int("log.flush.interval.messages") == 1,
        control=None if control is None else f"http://{control[0]}:{control[1]}",
        metrics=[url for one in brokers if one.metrics is not None and (url := one.metrics.url)],
    )


def _embedded(brokers: Sequence[Broker]) -> str:
    return "embedded, in the log directory" if len(brokers) == 1 else "embedded, next to the log directories"
