"""`--kafka-bootstrap`: whether the cluster is there, before any test; and which tests need a broker of ours, after all.

A test that needs our broker is skipped, with a reason that begins with `NEEDS_OURS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import pytest

from kpybroker.pytest_plugin.options import REACH_S_MAX, external, named, real_cluster

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from kpybroker.client.connect.settings import Settings

NEEDS_OURS: Final = "needs a broker of kpybroker"
LOGIN: Final = "give its TLS and login with --kafka-command-config FILE, or name a listener without"


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the run where the cluster does not respond, in two lines: each test would say so again. Raises UsageError."""
    config = session.config
    settings = real_cluster(config)
    is_worker = hasattr(config, "workerinput")
    if settings is None or is_worker or config.option.collectonly:
        return
    from kpybroker.cli.health.no_broker import NoBroker

    try:
        _first_that_responds(settings.addresses, settings)
    except NoBroker as error:
        _end(f"{named(config)}: {error.cause}", error.fix)
    at = _named_by_the_cluster(config, settings)
    try:
        _first_that_responds(at, settings)
    except NoBroker as error:
        brokers = ", ".join(f"{host}:{port}" for host, port in at)
        cause = f"{named(config)}: the cluster names its brokers {brokers}: {error.cause}"
        _end(cause, "set advertised.listeners to addresses that this machine reaches")


def _first_that_responds(places: Sequence[tuple[str, int]], settings: Settings) -> None:
    """Return when one does. Raises NoBroker, of the first, where none does."""
    from kpybroker.cli.health.no_broker import NoBroker

    first: NoBroker | None = None
    for place in places:
        try:
            _ask(place, settings)
        except NoBroker as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first


def _ask(place: tuple[str, int], settings: Settings) -> None:
    """Without a login where there is none: that needs no client library. Raises NoBroker."""
    from kpybroker.cli.health.no_broker import NoBroker
    from kpybroker.cli.health.ping import count_apis
    from kpybroker.cli.health.secured import reach
    from kpybroker.client.connect.errors import CommandError

    if settings.protocol == "PLAINTEXT":
        try:
            count_apis(*place, REACH_S_MAX)
        except NoBroker as error:
            is_secured = "--command-config" in error.fix
            raise NoBroker(error.cause, LOGIN if is_secured else "start the cluster, or name another one") from None
        return
    try:
        reach(place, settings)
    except CommandError as error:
        raise NoBroker(error.cause, error.fix.replace("--command-config", "--kafka-command-config")) from None


def _named_by_the_cluster(config: pytest.Config, settings: Settings) -> list[tuple[str, int]]:
    """Where clients find its brokers; none where that cannot be asked."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return []
    try:
        found = AdminClient(settings.client()).list_topics(timeout=REACH_S_MAX)
    except KafkaException as error:
        fix = LOGIN if settings.protocol == "PLAINTEXT" else "correct the login, or name another listener"
        _end(f"{named(config)}: {error.args[0].str()}", fix)
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
