"""Runs a broker, or a development cluster of them, until it is stopped: configuration in, exit code out.

Whatever prevents the start is two lines on standard error, `kpybroker: <cause>` and `fix: <what to do>`, and one of the
codes in `exit_codes`. A first SIGTERM or SIGINT stops the broker in order; a second one ends the process at once.
SIGUSR1 logs how long the loop was blocked since the last one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kpybroker import __version__
from kpybroker.cli.banner import Address, BrokerFacts, banner, ready_line
from kpybroker.cli.exit_codes import EXIT_CONFIG, EXIT_FAILED, EXIT_OK
from kpybroker.cli.health.notify import STOPPING, notify, ready
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.fix import fix_for
from kpybroker.config.interpret import Note, interpret
from kpybroker.config.values import ConfigError

if TYPE_CHECKING:
    import trio

    from kpybroker.broker.app import Broker
    from kpybroker.control.hosted import Hosted

config_log = logging.getLogger("kafka.server.KafkaConfig")
server_log = logging.getLogger("kafka.server.KafkaServer")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
REPORT_SIGNALS = tuple(getattr(signal, name) for name in ("SIGUSR1",) if hasattr(signal, name))  # not on Windows


class Plan(NamedTuple):
    """A broker to run."""

    config: BrokerConfig
    notes: Sequence[Note]
    ephemeral: bool = False


def fail(cause: str, fix: str, code: int) -> NoReturn:
    """Print the two lines and end the process with `code`."""
    sys.stderr.write(f"kpybroker: {' '.join(cause.split())}\nfix: {' '.join(fix.split())}\n")
    sys.stderr.flush()
    raise SystemExit(code)


def plan(props: Mapping[str, str], source: str, *, ephemeral: bool = False) -> Plan:
    """Check the keys that the user gave; `source` says where, for the error. Ends the process if one is bad."""
    try:
        interpreted = interpret(props)
        return Plan(BrokerConfig(interpreted.props), interpreted.notes, ephemeral)
    except ConfigError as error:
        fail(f"{error} ({source})", fix_for(error), EXIT_CONFIG)


def run(
    plans: Sequence[Plan], directory: str, control_port: int | None = None, exit_with_pid: int | None = None
) -> int:
    """Run one broker or several until stopped; the exit code.

    `directory` is for what belongs to no single broker of them. `control_port`: open the control channel there.
    `exit_with_pid`: stop when that process ends.
    """
    import trio

    from kpybroker.broker.lifecycle.errors import StartupError

    _one_heap_for_all_threads()
    for note in plans[0].notes:
        config_log.log(logging.WARNING if note.serious else logging.INFO, "%s", note.text)
    try:
        trio.run(_serve, plans, directory, control_port, exit_with_pid)
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


def _one_heap_for_all_threads() -> None:
    """Limits glibc to one heap (mallopt(3), M_ARENA_MAX), as other C libraries have.

    By default each thread has its own, and keeps what it has freed: large requests handled by several worker threads
    would take their memory once for each thread. With the GIL, several heaps gain nothing.
    """
    import ctypes  # trio has it too

    arena_max = -8
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(arena_max, 1)


def _the_only(error: BaseException) -> BaseException:
    """The one exception inside groups of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _serve(plans: Sequence[Plan], directory: str, control_port: int | None, exit_with_pid: int | None) -> None:
    import trio

    from kpybroker.control.hosted import Hosted
    from kpybroker.control.plan import BrokerPlan

    hosted = Hosted([BrokerPlan.of(plan.config) for plan in plans], Path(directory))
    async with trio.open_nursery() as nursery:
        stop = _stop_on_signals(hosted, nursery.cancel_scope)
        if exit_with_pid is not None:
            from kpybroker.control.exit_with import exit_with

            exit_with(exit_with_pid, stop, lambda: None)
        if REPORT_SIGNALS:
            await nursery.start(_report_on_signals, hosted)
        control = None
        if control_port is not None:
            from kpybroker.control.start import open_channel

            control = await nursery.start(open_channel, hosted, control_port)

        async def on_ready() -> None:
            announce(list(hosted.brokers.values()), plans[0], control)

        await hosted.run(on_ready)
        nursery.cancel_scope.cancel()
    if hosted.fatal is not None:
        raise hosted.fatal


def _stop_on_signals(hosted: Hosted, start: trio.CancelScope) -> Callable[[], None]:
    """The first signal stops the loop; the second ends the process without it, since the loop may be stuck.

    What is returned stops the loop too; call it in any thread.

    The handlers stay until the process ends, since there is work after the loop too. (The system's own handling would
    do nothing to process 1 of a container.)
    """
    import trio

    token = trio.lowlevel.current_trio_token()
    is_stopping = False

    def stop() -> None:
        notify(STOPPING)
        if hosted.is_ready:
            hosted.stop()
        else:
            start.cancel()

    def stop_soon() -> None:
        with suppress(trio.RunFinishedError):  # the loop has ended
            token.run_sync_soon(stop)

    def on_signal(number: int, _: FrameType | None) -> None:
        nonlocal is_stopping
        if is_stopping:
            os._exit(128 + number)
        is_stopping = True
        stop_soon()

    for number in STOP_SIGNALS:
        signal.signal(number, on_signal)
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


def announce(brokers: Sequence[Broker], wanted: Plan, control: tuple[str, int] | None) -> None:
    """Print the ready line and the banner: of the first broker, with the addresses of all."""
    broker = brokers[0]
    addresses = [Address(bound.name, *bound.listener.address[:2]) for one in brokers for bound in one.bound]
    connect = wanted.config.get_str("zookeeper.connect")
    facts = BrokerFacts(
        node_id=broker.node_id,
        cluster_id=broker.cluster_id,
        version=__version__,
        log_dirs=[directory for one in brokers for directory in one.logs.dirs.configured],
        coordination=f"ZooKeeper at {connect}" if connect else _embedded(brokers),
        ephemeral=wanted.ephemeral,
        fsync_each=wanted.config.get_int("log.flush.interval.messages") == 1,
    )
    text = banner(addresses, facts)
    try:
        sys.stdout.write(f"{ready_line(addresses, control)}\n{text}\n")
        sys.stdout.flush()
    except OSError as error:
        config_log.warning("The ready banner could not be printed: %s", error)
    notify(ready(str(addresses[0])))


def _embedded(brokers: Sequence[Broker]) -> str:
    return "embedded, in the log directory" if len(brokers) == 1 else "embedded, next to the log directories"
