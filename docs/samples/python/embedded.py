"""A broker inside a trio program."""

import tempfile

import trio

from kpybroker.broker.app import Broker
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.development import development_defaults


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        keys = {**development_defaults(), "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": directory}
        config = BrokerConfig(keys)
        async with Broker.open(config) as broker:
            host, port, *_ = broker.bound[0].listener.address
            print(f"serving at {host}:{port}")


trio.run(main)
