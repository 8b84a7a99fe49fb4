"""What a failed test's report shows of its broker: the log since the test began, and the last requests."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kpybroker.pytest_plugin import marker
from kpybroker.pytest_plugin.options import external

if TYPE_CHECKING:
    from kpybroker.testing import Brokers, Request

SEEN_LINES, SEEN_REQUESTS = 40, 20

_began = pytest.StashKey[float]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember when the test began. Raises UsageError for a marker that is wrong."""
    item.stash[_began] = time.time() * 1000
    marker.check(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the sections to the report of a test that failed, for each broker that it took or started."""
    report = yield
    kit = sys.modules.get("kpybroker.testing.brokers")
    if report.failed and kit is not None and external(item.config) is None:
        since_ms = item.stash.get(_began, 0.0)
        for name, broker in _of_test(item, kit.known, since_ms):
            report.sections += _sections(name, broker, since_ms)
    return report


def _of_test(item: pytest.Item, known: Iterable[Brokers], since_ms: float) -> Iterator[tuple[str, Brokers]]:
    """The brokers of its fixtures by their names, and those that it has started itself."""
    taken = {id(value): name for name, value in getattr(item, "funcargs", {}).items()}
    for broker in known:
        name = taken.get(id(broker))
        if name is not None or broker.started_s * 1000 >= since_ms:
            yield name or repr(broker), broker


def _sections(name: str, broker: Brokers, since_ms: float) -> list[tuple[str, str]]:
    try:
        if broker.is_running:
            seen = broker.log(SEEN_LINES), broker.requests(limit=SEEN_REQUESTS)
        elif broker.seen is not None:
            seen = broker.seen
        else:
            return []
    except Exception as error:  # the test's own failure is what counts
        return [(f"{name}: no log", f"{type(error).__name__}: {error}")]
    log, requests = seen
    lines = [_line(one) for one in requests if one.time_ms >= since_ms - 1]
    return [
        (f"{name}: the last {SEEN_LINES} lines of its log", "\n".join(log)),
        (f"{name}: its last requests", "\n".join(lines) or "none since the test began"),
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
