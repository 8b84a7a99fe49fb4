"""Notifications in the tree: each is handled once and in order, and nothing is missed over a new session."""

from __future__ import annotations

from pathlib import Path

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.security.notifications import Notifications, Subject
from tests.support.brokers.running_broker import running_broker

PATH, PREFIX = "/things/changes", "change_"


class Follower:
    """Keeps what it was notified of. `reloads` counts how often everything was read."""

    def __init__(self, broker: Broker) -> None:
        self.seen: list[bytes | None] = []
        self.reloads = 0
        self.notifications = Notifications(broker, Subject(PATH, PREFIX, self._changed, self._reload))

    async def _changed(self, data: bytes | None) -> None:
        self.seen.append(data)

    async def _reload(self) -> None:
        self.reloads += 1

    async def until_seen(self, count: int) -> None:
        with trio.fail_after(60):
            while len(self.seen) < count:
                await trio.lowlevel.checkpoint()


async def announce(broker: Broker, data: bytes) -> None:
    await broker.tree.create(f"{PATH}/{PREFIX}", data, sequential=True)


async def test_each_is_handled_once_in_order(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        follower = Follower(broker)
        await follower.notifications.start()
        assert follower.reloads == 1
        texts = [str(number).encode() for number in range(20)]
        for text in texts:
            await announce(broker, text)
        await follower.until_seen(20)
        await follower.notifications.process_pending()
        assert follower.seen == texts
        assert follower.reloads == 1


async def test_what_was_there_at_the_start_is_read_with_everything(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await Follower(broker).notifications.start()
        await announce(broker, b"before")
        follower = Follower(broker)
        await follower.notifications.start()
        await announce(broker, b"after")
        await follower.until_seen(1)
        assert follower.seen == [b"after"]


async def test_a_child_of_another_name_is_ignored(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        follower = Follower(broker)
        await follower.notifications.start()
        await broker.tree.create(f"{PATH}/other", b"no notification")
        await announce(broker, b"one")
        await follower.until_seen(1)
        assert follower.seen == [b"one"]


async def test_a_new_session_reads_everything_again(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        follower = Follower(broker)
        await follower.notifications.start()
        follower.notifications._generation -= 1  # as after an expired session, in which this was announced and removed
        await announce(broker, b"missed or not")
        with trio.fail_after(60):
            while follower.reloads < 2:
                await trio.lowlevel.checkpoint()
        await announce(broker, b"next")
        await follower.until_seen(1)
        assert follower.seen == [b"next"]
