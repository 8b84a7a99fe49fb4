"""Stock programs of Kafka 4.3.1 with a share group: its console consumer and `kafka-share-groups`, over a restart.

No build serves share groups by itself yet. The broker runs in this process, where the test switches them on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from compat_tests.support.tools import Tools
from kpybroker.broker.app import Broker
from kpybroker.broker.handlers import routes
from kpybroker.broker.requests.served import apis
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.features import SHARE_VERSION, Finalized
from kpybroker.wire.api import ApiKey

KEYS = {
    "broker.id": "0",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
GROUP, TOPIC = "workers", "orders"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
OF_GROUPS = (
    *(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
    *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE),
    *(ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
    *(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS),
)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in OF_GROUPS:
        ledger = routes.load(key).LEDGER
        monkeypatch.setitem(apis.SERVED, key, (ledger.min_version, ledger.max_version))
    monkeypatch.setattr(apis, "REFUSED", apis.REFUSED - {ApiKey.SHARE_GROUP_HEARTBEAT})


@asynccontextmanager
async def share_broker(directory: Path) -> AsyncIterator[tuple[Broker, Tools]]:
    async with Broker.open(BrokerConfig({**KEYS, "log.dirs": str(directory)})) as broker:
        features = broker.metadata.snapshot.features
        broker.metadata.finalize(Finalized({**features.levels, SHARE_VERSION: 1}, features.epoch + 1))
        yield broker, Tools("4.x", f"127.0.0.1:{broker.bound[0].listener.address[1]}")


async def consumed(tools: Tools, count: int) -> list[str]:
    """What a member reads and accepts, until it has so many records."""
    words = ("--bootstrap-server", tools.bootstrap, "--topic", TOPIC, "--group", GROUP)
    limits = ("--max-messages", str(count), "--timeout-ms", "60000")
    done = await trio.to_thread.run_sync(partial(tools.run_main, CONSUMER, *words, *limits))
    return done.out.split()


async def groups(tools: Tools, *words: str) -> str:
    done = await trio.to_thread.run_sync(partial(tools.run_main, GROUPS, "--bootstrap-server", tools.bootstrap, *words))
    return done.out


async def produced(tools: Tools, *values: str) -> None:
    lines = "".join(f"{value}\n" for value in values)
    await trio.to_thread.run_sync(partial(tools.run, "console-producer", "--topic", TOPIC, stdin=lines))


def states(broker: Broker) -> int:
    return sum(len(machine.states) for machine in broker.coordinators.share_states.partitions.machines)


async def scenario(directory: Path) -> None:
    first, second = [f"m{number}" for number in range(20)], [f"n{number}" for number in range(5)]
    async with share_broker(directory) as (_, tools):
        run = trio.to_thread.run_sync
        await run(partial(tools.run, "topics", "--create", "--topic", TOPIC, "--partitions", "2"))
        setting = ("--entity-name", GROUP, "--add-config", "share.auto.offset.reset=earliest")
        await run(partial(tools.run, "configs", "--alter", "--entity-type", "groups", *setting))
        await produced(tools, *first)
        assert sorted(await consumed(tools, 20)) == sorted(first)
    async with share_broker(directory) as (broker, tools):
        await produced(tools, *second)
        assert sorted(await consumed(tools, 5)) == sorted(second), "what was accepted before is not sent again"
        rows = [row.split() for row in (await groups(tools, "--describe", "--group", GROUP, "--offsets")).splitlines()]
        lags = [row[-1] for row in rows if row[:2] == [GROUP, TOPIC]]
        assert len(lags) == 2
        assert sum(int(lag) for lag in lags if lag != "-") == 0
        assert states(broker) == 2
        await groups(tools, "--delete", "--group", GROUP)
        assert states(broker) == 0


@pytest.mark.wide
def test_a_share_group_of_stock_programs(tmp_path: Path, served: None) -> None:
    trio.run(scenario, tmp_path)
