"""Requests by API: counts, error codes, stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.dispatch import Dispatcher
from kpybroker.broker.requests.stage_times import StageTimes
from kpybroker.metrics.reading import Reading
from kpybroker.metrics.tables import requests as r
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ErrorCode


class RequestsReader:
    """`kafka.network:type=RequestMetrics`."""

    families: Final = r.FAMILIES

    def __init__(self, dispatcher: Dispatcher, times: StageTimes) -> None:
        self._dispatcher = dispatcher
        self._times = times

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Three groups: by API and version, by API and error code, by API."""
        routes = [route for route in self._dispatcher.routes if route.requests]
        await budget.spend(len(routes))
        rows = [(api_name(route.key), str(route.version)) for route in routes]
        errors = self._errors()
        apis = list(self._times.apis.items())
        stages = [times.all() for _, times in apis]
        by_stage = zip((*r.STAGES, r.REQUEST_BYTES), zip(*stages, strict=True), strict=False)
        return [
            Reading(rows, [(r.REQUESTS, [route.requests for route in routes])]),
            Reading(list(errors), [(r.ERRORS, list(errors.values()))]),
            Reading([(api_name(key),) for key, _ in apis], list(by_stage)),
        ]

    def _errors(self) -> dict[tuple[str, str], int]:
        """What `handle_fast` answered is not in the counts: one partition each, without an error."""
        found: dict[tuple[str, str], int] = defaultdict(int)
        for route in self._dispatcher.routes:
            name = api_name(route.key)
            if fast := route.requests - route.plain_requests:
                found[name, ErrorCode.NONE.name] += fast
            for code, count in list(route.error_counts.items()):
                found[name, error_name(code)] += count
        return found


def api_name(key: ApiKey) -> str:
    """As Kafka's `ApiKeys.name`: `Produce`, `OffsetCommit`."""
    return API_INFO[key].name


def error_name(code: int) -> str:
    """`UNKNOWN_TOPIC_OR_PARTITION`; the number for a code without a name."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
