"""The embedded tree and real ZooKeeper give the same results and events for any sequence of operations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kpybroker.core import tree as t
from tests.coordination.conftest import EventLog, chroot_of, running
from tests.support.programs.zookeeper import ZooKeeperServer

OPERATIONS = 400
NAMES = ("a", "b")


def any_path(random: Random) -> str:
    return "/top" + "".join("/" + random.choice(NAMES) for _ in range(random.randint(0, 3)))


def any_part(random: Random) -> t.Create | t.SetData | t.Delete | t.Check:
    path, version = any_path(random), random.choice((-1, -1, 0, 1))
    match random.randint(0, 5):
        case 0 | 1:
            return t.Create(path, random.choice((b"x", b"", None)), random.random() < 0.2, random.random() < 0.2)
        case 2:
            return t.SetData(path, random.choice((random.randbytes(3), b"", None)), version)
        case 3 | 4:
            return t.Delete(path, version)
        case _:
            return t.Check(path, version)


def any_operation(random: Random) -> t.Operation:
    path, watch = any_path(random), random.random() < 0.5
    match random.randint(0, 9):
        case 0:
            return t.Get(path, watch)
        case 1:
            return t.Exists(path, watch)
        case 2:
            return t.Children(path, watch)
        case 3:
            return t.Multi(tuple(any_part(random) for _ in range(random.randint(1, 4))))
        case 4:
            return t.SetAcl(path, t.READ_ACL_UNSAFE + t.OPEN_ACL_UNSAFE, random.choice((-1, 0)))
        case _:
            part = any_part(random)
            return t.Exists(path, watch) if isinstance(part, t.Check) else part


class Canon:
    """Zxids and times differ between two trees; their order and equality must not: each is replaced by its rank."""

    def __init__(self) -> None:
        self._ranks: dict[int, int] = {}

    def _rank(self, zxid: int) -> int:
        return self._ranks.setdefault(zxid, len(self._ranks))

    def of(self, result: object) -> object:
        match result:
            case t.Stat():
                zxids = (self._rank(result.czxid), self._rank(result.mzxid), self._rank(result.pzxid))
                owned = int(result.ephemeral_owner != 0)
                return replace(
                    result, czxid=zxids[0], mzxid=zxids[1], pzxid=zxids[2], ctime=0, mtime=0, ephemeral_owner=owned
                )
            case t.NodeData():
                return (result.data, self.of(result.stat))
            case t.NodeChildren():
                return (sorted(result.names), self.of(result.stat))
            case t.Created():
                return (result.path, self.of(result.stat))
            case t.MultiFailed():
                return [self.of(error) for error in result.errors]
            case t.TreeError():
                return (type(result).__name__, result.path)
            case tuple():
                return tuple(self.of(part) for part in result)
            case _:
                return result


async def scenario(kind: str, directory: Path, connect: str, seed: int) -> list[object]:
    """The results and events that two clients got."""
    random, canon = Random(seed), Canon()
    seen: list[object] = []
    async with running(kind, directory, connect) as cluster:
        clients = [await cluster.client(), await cluster.client()]
        await clients[0][0].create("/top")
        for _ in range(OPERATIONS):
            tree, _ = clients[random.randint(0, 1)]
            seen.append(canon.of((await tree.submit_many([any_operation(random)]))[0]))
            for other, log in clients:
                await other.exists("/top")  # its events arrive before this result
                seen.append(drain(log))
    return seen


def drain(log: EventLog) -> list[tuple[str, str]]:
    events = [(event.type.name, event.path) for event in log.watch_events]
    log.heard.clear()
    return events


@pytest.mark.parametrize("seed", range(3))
async def test_every_tree_gives_the_same(seed: int, tmp_path: Path, zookeeper_server_shared: ZooKeeperServer) -> None:
    (tmp_path / "served").mkdir()
    expected = await scenario("zookeeper", tmp_path, chroot_of(zookeeper_server_shared), seed)
    assert len({str(result) for result in expected}) > 100  # the scenario is varied
    assert await scenario("memory", tmp_path, "", seed) == expected
    assert await scenario("sqlite", tmp_path, "", seed) == expected
    assert await scenario("served", tmp_path / "served", "", seed) == expected
