"""Clients that send hostile texts to a registry, and one next to them that registers and reads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

import httpx

from tests.registry.texts.hostile import GOOD, Hostile, table

WAIT_S = 600.0
PACE_S = 0.05
"""Between two registrations of the one that is not a stranger."""
EXPECTED = {200, 404, 409, 413, 422, 429}


class Strangers:
    """Sends each text to three routes; the table is shared by all of them.

    Unless `is_kept`, what was registered is deleted, so nothing need grow.
    """

    def __init__(self, url: str, count: int, *, is_kept: bool = True, seconds_max: float = inf) -> None:
        self._url = url
        self._is_kept = is_kept
        self._texts = table(count)
        self._end = time.monotonic() + seconds_max
        self.sent = 0
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.unexpected: list[tuple[str, str, int, str]] = []

    def _next(self) -> Hostile | None:
        with self._lock:
            one = next(self._texts, None) if time.monotonic() < self._end else None
            self.sent += one is not None
            return one

    def run(self) -> None:
        """Until no text is left, or no time. One client of several."""
        with httpx.Client(base_url=self._url, timeout=WAIT_S) as client:
            while (one := self._next()) is not None:
                subject = f"hostile-{one.kind}-{'' if self._is_kept else threading.get_ident()}"
                body = {"schema": one.text, "schemaType": one.kind}
                for path in (
                    f"/compatibility/subjects/{subject}/versions/latest",
                    f"/subjects/{subject}?normalize=true",
                    f"/subjects/{subject}/versions",
                ):
                    response = client.post(path, json=body)
                    self.statuses[response.status_code] += 1
                    if response.status_code not in EXPECTED:
                        self.unexpected.append((one.name, path, response.status_code, response.text[:300]))
                for query in () if self._is_kept else ("", "?permanent=true"):
                    client.delete(f"/subjects/{subject}{query}")


class Wait(NamedTuple):
    """Of the client that is no stranger, in seconds; `delayed` is what the machine took of both, where it is known."""

    register: float
    read: float
    delayed: float


def asked(
    url: str, is_over: threading.Event, *, is_kept: bool = True, delays: Callable[[], float] = lambda: 0.0
) -> Iterator[Wait]:
    """What another client waits for a registration, and for a read. Unless `is_kept`, it deletes what it registered.

    `delays` says for how many seconds the machine has held up what the requests go through, since whenever.
    """
    with httpx.Client(base_url=url, timeout=WAIT_S) as client:
        number = 0
        while not (is_over.is_set() and number >= len(GOOD)):
            kind, text = list(GOOD.items())[number % len(GOOD)]
            number += 1
            body = {"schema": f"{text}{' ' * number}", "schemaType": kind}
            before, begin = delays(), time.monotonic()
            client.post(f"/subjects/good-{number}/versions", json=body).raise_for_status()
            between = time.monotonic()
            client.get(f"/subjects/good-{number}/versions/latest").raise_for_status()
            yield Wait(between - begin, time.monotonic() - between, delays() - before)
            for query in () if is_kept else ("", "?permanent=true"):
                client.delete(f"/subjects/good-{number}{query}").raise_for_status()
            is_over.wait(PACE_S)
