"""What a page may ask is bounded, and a cluster that comes back is found at once."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.web import live
from kpybroker.console.web.live import Live
from tests.console.conftest import settings_for

NOWHERE = settings_for("127.0.0.1:1")


def test_a_page_gives_up_a_cluster_that_does_not_respond() -> None:
    release = threading.Event()

    async def ask() -> None:
        with pytest.raises(CommandError, match="did not respond within"):
            await Live(NOWHERE, page_s_max=0.01).run(release.wait)
        release.set()

    anyio.run(ask)


def test_work_that_was_given_up_still_counts_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WORKING_MAX", 1)
    began, release, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        release.wait()

    async def ask() -> None:
        asked = Live(NOWHERE, page_s_max=0.01)
        while not began.is_set():  # what is given up before that does not count
            with pytest.raises(CommandError, match=r"did not respond|too many pages wait"):
                await asked.run(work)
        with pytest.raises(CommandError, match="too many pages wait"):
            await asked.run(ended.set)
        release.set()
        while not ended.is_set():
            try:
                await asked.run(ended.set)
            except CommandError:
                await anyio.lowlevel.checkpoint()

    anyio.run(ask)


def test_work_that_was_given_up_before_it_began_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WORKING_MAX", 1)
    done: list[int] = []

    async def ask() -> None:
        asked = Live(NOWHERE, page_s_max=-1)
        with pytest.raises(CommandError, match="did not respond"):
            await asked.run(lambda: done.append(1))
        asked = Live(NOWHERE)
        with anyio.CancelScope() as left:
            left.cancel()
            await asked.run(lambda: done.append(2))
        await asked.run(lambda: done.append(3))

    anyio.run(ask)
    assert done == [3]


def test_after_a_failure_the_next_page_has_a_new_client() -> None:
    def refused(*_: object) -> None:
        raise CommandError("refused")

    async def ask() -> None:
        asked = Live(NOWHERE)
        first, _ = await asked.ask(lambda cluster, _: cluster)
        same, _ = await asked.ask(lambda cluster, _: cluster)
        with pytest.raises(CommandError, match="refused"):
            await asked.ask(refused)
        other, _ = await asked.ask(lambda cluster, _: cluster)
        assert first is same
        assert first is not other

    anyio.run(ask)
