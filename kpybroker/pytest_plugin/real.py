"""`--kafka-bootstrap`: whether the cluster is there, before any test; and which tests need a broker of ours, after all.

A test that needs our broker is skipped, with a reason that begins with `NEEDS_OURS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

from kpybroker.pytest_plugin.options import external

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

NEEDS_OURS: Final = "needs a broker of kpybroker"
REACH_S_MAX: Final = 10.0


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the run where the cluster does not respond, in two lines: each test would say so again. Raises UsageError."""
    config = session.config
    address = external(config)
    is_worker = hasattr(config, "workerinput")
    if address is None or is_worker or config.option.collectonly:
        return
    from kpybroker.cli.health.no_broker import NoBroker

    try:
        _first_that_responds(_places(address))
    except NoBroker as error:
        _end(f"--kafka-bootstrap={address}: {error.cause}", "start the cluster, or name another one")
    named = _named_by_the_cluster(address)
    try:
        _first_that_responds(named)
    except NoBroker as error:
        brokers = ", ".join(f"{host}:{port}" for host, port in named)
        cause = f"--kafka-bootstrap={address}: the cluster names its brokers {brokers}: {error.cause}"
        _end(cause, "set advertised.listeners to addresses that this machine reaches")


def _places(address: str) -> list[tuple[str, int]]:
    split = (one.strip().rpartition(":") for one in address.split(","))
    return [(host.removeprefix("[").removesuffix("]"), int(port)) for host, _, port in split]


def _first_that_responds(places: Sequence[tuple[str, int]]) -> None:
    """Return when one does. Raises NoBroker, of the first, where none does."""
    from kpybroker.cli.health.no_broker import NoBroker
    from kpybroker.cli.health.ping import count_apis

    first: NoBroker | None = None
    for host, port in places:
        try:
            count_apis(host, port, REACH_S_MAX)
        except NoBroker as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first


def _named_by_the_cluster(address: str) -> list[tuple[str, int]]:
    """Where clients find its brokers; none where that cannot be asked."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return []
    try:
        found = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=REACH_S_MAX)
    except KafkaException as error:
        _end(f"--kafka-bootstrap={address}: {error.args[0].str()}", "name a listener without TLS and logins")
    return [(broker.host, broker.port) for broker in found.brokers.values()]


def _end(cause: str, fix: str) -> NoReturn:
    raise pytest.UsageError(cause, f"fix: {fix}")


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Name the tests that were skipped since they need our broker, with their number."""
    if external(config) is None:
        return
    skipped = [
        (report.nodeid, report.longrepr[2].partition(f"{NEEDS_OURS}: ")[2])
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple) and NEEDS_OURS in report.longrepr[2]
    ]
    if not skipped:
        return
    terminalreporter.section(f"skipped on {external(config)}")
    for nodeid, why in skipped:
        terminalreporter.write_line(f"{nodeid}: {why}")
    tests = "1 test needs" if len(skipped) == 1 else f"{len(skipped)} tests need"
    terminalreporter.write_line(f"{tests} a broker of kpybroker: run them without --kafka-bootstrap, too")
