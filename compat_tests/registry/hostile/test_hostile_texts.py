"""Clients that send hostile texts at once, next to one that registers and reads: it gets its responses.

`make soak-schemas` sends ten thousand. No time decides the test.
"""

from __future__ import annotations

import sys
import threading

import psutil
import pytest

from compat_tests.registry.conftest import MakeRegistry
from compat_tests.registry.hostile.strangers import Strangers, asked
from tests.registry.texts.hostile import GOOD

COUNT = 44
CLIENTS = 6
MEMORY_BYTES_MAX = 400 << 20
"""Of the registry itself, after texts of up to 3 MB, of which some are registered."""


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
def test_others_get_their_responses_and_only_workers_end(start: MakeRegistry) -> None:
    instance = start()
    strangers = Strangers(instance.url, COUNT)
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
    assert len(waits) >= len(GOOD)
    assert instance.stop() == 0
