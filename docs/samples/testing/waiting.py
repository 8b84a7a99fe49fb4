"""The awaitable twins of what waits, in asyncio and in trio."""

import asyncio

from kpybroker.testing import Broker


async def main() -> None:
    async with Broker(topics=["orders"]) as broker, broker.aio_consumer("billing", "orders") as consumer:
        await broker.aio.wait_group("billing", state="Stable", members=1)
        broker.produce("orders", ["one"])
        print((await consumer.getone()).value)


asyncio.run(main())
