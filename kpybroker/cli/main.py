"""Stand-in until the command line is finished (helper F replaces this file)."""

from __future__ import annotations

import logging
import signal
import sys

import javaproperties
import trio

from kpybroker.broker.app import Broker
from kpybroker.config.broker import BrokerConfig


async def _run(config: BrokerConfig) -> None:
    async with Broker.open(config) as broker:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                return
        del broker


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")
    if sys.argv[1] == "server":
        with open(sys.argv[2], encoding="latin-1") as file:
            values = javaproperties.load(file)
    else:
        port = sys.argv[sys.argv.index("--port") + 1] if "--port" in sys.argv else "9092"
        place = sys.argv[sys.argv.index("--data-dir") + 1] if "--data-dir" in sys.argv else "/tmp/kpybroker"
        values = {"broker.id": "0", "listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.dirs": place}
        values |= {"offsets.topic.replication.factor": "1", "group.initial.rebalance.delay.ms": "0"}
    trio.run(_run, BrokerConfig(values))
