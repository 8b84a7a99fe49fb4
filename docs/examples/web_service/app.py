"""A web service that writes what it receives to Kafka: FastAPI and aiokafka."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

TOPIC = os.environ.get("CLICKS_TOPIC", "clicks")


class Click(BaseModel):
    """What a page reports."""

    user: str
    page: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One producer for the life of the service."""
    servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    async with AIOKafkaProducer(bootstrap_servers=servers, request_timeout_ms=2_000) as producer:
        app.state.producer = producer
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/clicks", status_code=202)
async def click(click: Click) -> dict[str, int]:
    """The offset of the click. 503: it was not written, send it again."""
    try:
        written = await app.state.producer.send_and_wait(
            TOPIC, click.model_dump_json().encode(), key=click.user.encode()
        )
    except KafkaError as error:
        raise HTTPException(503, f"not written: {error}") from error
    return {"offset": written.offset}
