"""A web service that takes orders, and reports each to Kafka: FastAPI, aiokafka and an outbox.

A service that writes to its database and then to Kafka loses the event if it dies in between. Here the event is in the
database, and a task of the service sends what it finds there, in order. If it dies after Kafka has the event and before
the row is gone, it sends the event again: consumers see the header `id`, and skip what they have seen.

    ORDERS_DATABASE=orders.sqlite KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092 uvicorn app:app
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from store import Refused, Store

TOPIC = os.environ.get("ORDERS_TOPIC", "orders")
RETRY_S = 0.2


class Order(BaseModel):
    """What a client sends."""

    customer: str
    amount: int


async def relay(store: Store, producer: AIOKafkaProducer, wake: asyncio.Event) -> None:
    """Send events until cancelled. One that Kafka refuses is tried again, and those behind it wait."""
    while True:
        wake.clear()
        for number, key, event in store.pending():
            try:
                await producer.send_and_wait(
                    TOPIC, event.encode(), key=key.encode(), headers=[("id", str(number).encode())]
                )
            except KafkaError:
                await asyncio.sleep(RETRY_S)
                wake.set()
                break
            store.sent(number)
        await wake.wait()


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One producer and one relay for the life of the service. At a start the events of the last run are sent."""
    app.state.store = Store(os.environ["ORDERS_DATABASE"])
    app.state.wake = asyncio.Event()
    servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
        sending = asyncio.create_task(relay(app.state.store, producer, app.state.wake))
        yield
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
    app.state.store.close()


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def order(order: Order) -> dict[str, int]:
    """The id of the order. Kafka may be down: the event is sent when it is back."""
    try:
        number = app.state.store.add(order.customer, order.amount)
    except Refused as error:
        raise HTTPException(422, str(error)) from error
    app.state.wake.set()
    return {"id": number}
