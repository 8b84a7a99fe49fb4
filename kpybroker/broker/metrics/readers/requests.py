"""Requests by API: counts, error codes, stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.dispatch import Dispatcher
from kpybroker.broker.requests.stage_times import StageTimes
from kpybroker.metrics.reading import Reading
from kpybroker.metrics.tables import requests as r
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ErrorCode

FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"


class RequestsReader:
    """`kafka.network:type=RequestMetrics`."""

    families: Final = r.FAMILIES

    def __init__(self, dispatcher: Dispatcher, times: StageTimes, follower_fetches: Mapping[int, int]) -> None:
        """`follower_fetches` by version: they and the others are counted once more, as in Kafka."""
        self._dispatcher = dispatcher
        self._times = times
        self._follower_fetches = follower_fetches

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Three groups: by API and version, by API and error code, by API."""
        routes = [route for route in self._dispatcher.routes if route.requests]
        await budget.spend(len(routes))
        counts = {(api_name(route.key), str(route.version)): route.requests for route in routes}
        for route in routes:
            if route.key is ApiKey.FETCH:
                of_followers = self._follower_fetches.get(route.version, 0)
                fetches = {FETCH_FOLLOWER: of_followers, FETCH_CONSUMER: route.requests - of_followers}
                counts |= {(name, str(route.version)): count for name, count in fetches.items() if count}
        errors = self._errors()
        apis = {api_name(key): times for key, times in self._times.apis.items()}
        if ApiKey.FETCH in self._times.apis:
            apis |= {FETCH_CONSUMER: self._times.consumer_fetches, FETCH_FOLLOWER: self._times.follower_fetches}
        stages = [times.all() for times in apis.values()]
        by_stage = zip((*r.STAGES, r.REQUEST_BYTES), zip(*stages, strict=True), strict=False)
        return [
            Reading(list(counts), [(r.REQUESTS, list(counts.values()))]),
            Reading(list(errors), [(r.ERRORS, list(errors.values()))]),
            Reading([(name,) for name in apis], list(by_stage)),
        ]

    def _errors(self) -> dict[tuple[str, str], int]:
        """What `handle_fast` responded to is not in the counts: one partition each, without an error."""
        found: dict[tuple[str, str], int] = defaultdict(int)
        for route in self._dispatcher.routes:
            name = api_name(route.key)
            if fast := route.requests - route.plain_requests:
                found[name, ErrorCode.NONE.name] += fast
            for code, count in list(route.error_counts.items()):
                found[name, error_name(code)] += count
        return found


def api_name(key: ApiKey) -> str:
    """As Kafka's ``ApiKeys.name``: `Produce`, `OffsetCommit`."""
    return API_INFO[key].name


def error_name(code: int) -> str:
    """`UNKNOWN_TOPIC_OR_PARTITION`; the number for a code without a name."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
