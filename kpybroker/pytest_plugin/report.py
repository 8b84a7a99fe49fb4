"""What a failed test's report shows of its broker: the log since the test began, and the last requests."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from kpybroker.pytest_plugin import marker
from kpybroker.pytest_plugin.options import external

if TYPE_CHECKING:
    from kpybroker.testing import Broker, Cluster, Request

LOG_LINES_MAX = 40
REQUESTS_MAX = 20
BROKER_FIXTURES = ("kafka_broker", "kafka_cluster")

_began = pytest.StashKey[float]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember when the test began. Raises UsageError for a marker that is wrong."""
    item.stash[_began] = time.time() * 1000
    marker.check(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the sections to the report of a test that failed and took a broker."""
    report = yield
    is_external = external(item.config) is not None
    if report.failed:
        for name in BROKER_FIXTURES:
            broker = getattr(item, "funcargs", {}).get(name)
            if broker is not None and not is_external and broker.is_running:
                report.sections += _sections(name, broker, item.stash.get(_began, 0.0))
    return report


def _sections(name: str, broker: Broker | Cluster, since_ms: float) -> list[tuple[str, str]]:
    try:
        log = broker.log(LOG_LINES_MAX)
        requests = [one for one in broker.requests(limit=REQUESTS_MAX) if one.time_ms >= since_ms - 1]
    except Exception as error:  # the test's own failure is what counts
        return [(f"{name}: no log", f"{type(error).__name__}: {error}")]
    return [
        (f"{name}: the last {LOG_LINES_MAX} lines of its log", "\n".join(log)),
        (f"{name}: its last requests", "\n".join(map(_line, requests)) or "none since the test began"),
    ]


def _line(request: Request) -> str:
    took = request.outcome if request.duration_ms is None else f"{request.outcome} after {request.duration_ms:.1f} ms"
    errors = f", {', '.join(request.errors)}" if request.errors else ""
    faults = f", faults {list(request.faults)}" if request.faults else ""
    asked = _short(request.request)
    return f"{request.id} {request.api} v{request.version} from {request.client_id}: {took}{errors}{faults} {asked}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
