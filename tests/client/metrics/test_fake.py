"""The fake of this folder responds as the broker's endpoint does, and the command reads the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.client.metrics.address import parse_address
from kpybroker.client.metrics.jolokia import Jolokia
from kpybroker.client.metrics.watch import AS_THE_SERVER
from tests.broker.replication.test_traffic import produce
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.network.jolokia_fake import FakeJolokia, serving
from tests.support.programs.command_line import Result, invoke
from tests.support.storage.batches import batch

COUNT = "kafka.server:type=ReplicaManager,name=PartitionCount"
ASKED = [
    ("search", COUNT),
    ("search", "kafka.log:type=Log,*"),
    ("search", "kafka.l?g:type=L*,topic=t,partition=*,name=S*"),
    ("search", "kafka.log:type=Log"),
    ("search", "kafka.nothing:*"),
    ("read", COUNT),
    ("read", "kafka.server:name=PartitionCount,type=ReplicaManager"),
    ("read", "kafka.log:type=Log,*"),
    ("read", "kafka.cluster:type=Partition,partition=0,*"),
    ("read", "kafka.server:type=ReplicaManager,name=Nothing"),
    ("read", "kafka.nothing:*"),
]


def responses(address: str, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what the client does not look at."""
    found = Jolokia(parse_address(address), 60).ask(requests)
    ignored = ("timestamp", "request", "error")
    return [{key: value for key, value in one.items() if key not in ignored} for one in found]


async def test_it_responds_as_the_broker_does(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port="0") as broker:
        await ask(broker, produce("t", batch(b"one", b"two")), 9)
        assert broker.metrics is not None
        assert broker.metrics.url is not None
        address = broker.metrics.url.removesuffix("/metrics")
        everything = [
            {"type": "read", "mbean": f"kafka.{domain}:*", "config": AS_THE_SERVER}
            for domain in ("log", "cluster", "server")
        ]
        mbeans: dict[str, Any] = {}
        for one in await trio.to_thread.run_sync(responses, address, everything):
            mbeans |= one["value"]
        requests = [{"type": kind, "mbean": mbean, "config": AS_THE_SERVER} for kind, mbean in ASKED]
        theirs = await trio.to_thread.run_sync(responses, address, requests)
        with serving(FakeJolokia(mbeans)) as fake:
            ours = await trio.to_thread.run_sync(responses, fake.address, requests)
        assert ours == theirs


async def test_the_command_reads_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port="0") as broker:
        await ask(broker, produce("t", batch(b"one", b"two")), 9)
        assert broker.metrics is not None
        assert broker.metrics.url is not None
        address = broker.metrics.url.removesuffix("/metrics")

        async def run(*arguments: str) -> Result:
            return await trio.to_thread.run_sync(lambda: invoke(monkeypatch, "metrics", *arguments))

        names = ["--object-name", COUNT, "--object-name", "kafka.log:type=Log,name=LogEndOffset,*"]
        result = await run("watch", address, *names, "--one-time", "--date-format", "'now'")
        assert (result.code, result.err) == (0, "")
        log = "kafka.log:type=Log,name=LogEndOffset,topic=t,partition=0:Value"
        assert result.lines == [f'"time","{log}","{COUNT}:Value"', "now,2,1"]
        listed = await run("list", address, "--object-name", "kafka.log:type=Log,*")
        assert [name.split(",")[1] for name in listed.lines] == [
            f"name={name}" for name in ("LogEndOffset", "LogStartOffset", "NumLogSegments", "Size")
        ]
