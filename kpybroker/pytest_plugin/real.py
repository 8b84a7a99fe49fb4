"""`--kafka-bootstrap`: whether the cluster is there, before any test; and which tests need a broker of ours, after all.

A test that needs our broker is skipped, with a reason that begins with `NEEDS_OURS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    from kpybroker.cli.health.ping import count_apis

    first: NoBroker | None = None
    for one in address.split(","):
        host, _, port = one.strip().rpartition(":")
        try:
            count_apis(host.removeprefix("[").removesuffix("]"), int(port), REACH_S_MAX)
        except NoBroker as error:
            first = first or error
        else:
            return
    assert first is not None
    raise pytest.UsageError(
        f"--kafka-bootstrap={address}: {first.cause}", "fix: start the cluster, or name another one"
    )


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
