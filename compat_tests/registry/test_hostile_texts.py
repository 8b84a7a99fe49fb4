"""Clients that send hostile texts at once, next to one that registers and reads: it gets its responses.

`KPYBROKER_TEST_HOSTILE_TEXTS=10000` sends more; the numbers that are printed (`-s`) are those of
docs/decisions/registry-workers.md. No time decides the test.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import psutil
import pytest

from compat_tests.registry.conftest import MakeRegistry
from tests.registry.texts.hostile import GOOD, Hostile, table

COUNT = int(os.environ.get("KPYBROKER_TEST_HOSTILE_TEXTS", "72"))
CLIENTS = 6
WAIT_S = 600.0
MEMORY_BYTES_MAX = 400 << 20
"""Of the registry itself, after texts of up to 3 MB, of which some are registered."""
EXPECTED = {200, 404, 409, 413, 422, 429}


class Strangers:
    """Sends each text to three routes; the table is shared by all of them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._texts = table(COUNT)
        self._lock = threading.Lock()
        self.statuses: Counter[int] = Counter()
        self.unexpected: list[tuple[str, str, int, str]] = []

    def _next(self) -> Hostile | None:
        with self._lock:
            return next(self._texts, None)

    def run(self) -> None:
        """Until no text is left. One client of several."""
        with httpx.Client(base_url=self._url, timeout=WAIT_S) as client:
            while (one := self._next()) is not None:
                subject = f"hostile-{one.kind}"
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


def asked(url: str, is_over: threading.Event) -> Iterator[tuple[float, float]]:
    """What another client waits for a registration, and for a read."""
    with httpx.Client(base_url=url, timeout=WAIT_S) as client:
        number = 0
        while not (is_over.is_set() and number >= len(GOOD)):
            kind, text = list(GOOD.items())[number % len(GOOD)]
            number += 1
            begin = time.monotonic()
            body = {"schema": f"{text}{' ' * number}", "schemaType": kind}
            client.post(f"/subjects/good-{number}/versions", json=body).raise_for_status()
            between = time.monotonic()
            client.get(f"/subjects/good-{number}/versions/latest").raise_for_status()
            yield between - begin, time.monotonic() - between


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
def test_others_get_their_responses_and_only_workers_end(start: MakeRegistry) -> None:
    instance = start()
    strangers = Strangers(instance.url)
    threads = [threading.Thread(target=strangers.run) for _ in range(CLIENTS)]
    is_over = threading.Event()

    def watch() -> None:
        for thread in threads:
            thread.join()
        is_over.set()

    for thread in threads:
        thread.start()
    watcher = threading.Thread(target=watch)
    watcher.start()
    waits = list(asked(instance.url, is_over))
    watcher.join()
    assert strangers.unexpected == []
    assert sum(strangers.statuses.values()) == 3 * COUNT
    assert instance.process.poll() is None
    process = psutil.Process(instance.process.pid)
    (template,) = process.children()
    assert len(template.children()) <= 2
    memory = process.memory_info().rss
    assert memory < MEMORY_BYTES_MAX
    registered, read = (sorted(times) for times in zip(*waits, strict=True))
    for name, times in (("register", registered), ("read", read)):
        middle, slowest = statistics.median(times), times[-1 - len(times) // 100]
        sys.stdout.write(f"\n{name}: median {middle:.3f} s, p99 {slowest:.3f} s, max {times[-1]:.3f} s")
    sys.stdout.write(f"\n{dict(strangers.statuses)}, {memory >> 20} MiB\n")
    assert instance.stop() == 0
