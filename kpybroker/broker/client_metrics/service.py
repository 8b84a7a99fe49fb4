"""Client metrics of one broker: the subscriptions in the tree, requests of clients, and where their metrics go.

`core.client_metrics` is imported with the first subscription or request, and the task that forgets instances is spawned
then: a broker of which no one asks for client metrics pays for none.

The APIs are listed to clients while there is a receiver with the packages that it needs, and `kpybroker.client.metrics`
says so: a client that does not find them does not ask again. Requests are served all the same, as in Kafka; without a
receiver metrics are dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.broker.client_metrics.packages import available
from kpybroker.broker.client_metrics.receiver import InvalidMetrics, Pushed, Receiver
from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.loop.yielding import in_thread, paced
from kpybroker.config.keys.own import CLIENT_METRICS_OFF, CLIENT_METRICS_ON
from kpybroker.wire.compression import Codec, decompress
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.znodes import client_metrics_of_entity

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.core.client_metrics.manager import ClientMetricsManager, Instance
    from kpybroker.wire.messages.push_telemetry import PushTelemetryRequest

logger = logging.getLogger("org.apache.kafka.server.ClientMetricsManager")

LOOK_S: Final = 10.0
"""How often instances are looked at that may have expired."""
ID_BYTES: Final = 16
LARGE_BYTES: Final = 16_384
UNPACKED_LARGE_BYTES: Final = 1 << 20
"""What is decompressed in a thread: bodies of this size, and all where they may become larger than that."""


class ClientMetrics:
    """`receiver` takes what is pushed; None: no one does."""

    def __init__(self, host: Host, receiver: Receiver | None = None) -> None:
        self.receiver = receiver
        self._host = host
        self._mode = host.config.get_str("kpybroker.client.metrics")
        self._matching = trio.Lock()
        self._props: dict[str, Mapping[str, str]] = {}

    @property
    def is_listed(self) -> bool:
        """Whether ApiVersions lists the APIs."""
        if self._mode == CLIENT_METRICS_OFF:
            return False
        return (self._mode == CLIENT_METRICS_ON or bool(self.names)) and self.receiver is not None and self._can_read

    @cached_property
    def _can_read(self) -> bool:
        """Whether there are the packages that read pushes; if not, the log says so once."""
        fix = available()
        if fix is not None:
            logger.warning("[KafkaServer id=%d] No client is asked for its metrics: %s", self._host.node_id, fix)
        return fix is None

    @property
    def names(self) -> list[str]:
        """The subscriptions that this broker knows, in order."""
        return sorted(self.manager.subscriptions) if self.is_used else []

    @property
    def is_used(self) -> bool:
        """Whether there was a subscription or a request since the start."""
        return "manager" in self.__dict__

    @cached_property
    def manager(self) -> ClientMetricsManager:
        """The rules, and the instances that they know."""
        from kpybroker.core.client_metrics.manager import ClientMetricsManager

        host = self._host
        max_bytes = host.config.get_int("telemetry.max.bytes")
        self._host.spawn("client-metrics-reaper", self._expire)
        return ClientMetricsManager(max_bytes, partial(host.random.randbytes, ID_BYTES), host.budget)

    def update(self, entity: str, props: Mapping[str, str]) -> None:
        """A subscription has these properties now; `entity` is its name in the tree. Without any it is removed.

        A broker learns of its own changes twice; only what differs makes instances new.
        """
        from kpybroker.core.client_metrics.configs import parse

        if self._props.get(entity, {}) == props:
            return
        self._props[entity] = dict(props)
        if not props:
            del self._props[entity]
        name = client_metrics_of_entity(entity)
        try:
            self.manager.subscribe(name, parse(name, props) if props else None)
        except KafkaError as error:  # another program has written it
            logger.error("The client metrics subscription %s is not used: %s", name, error.message)
            self.manager.subscribe(name, None)

    def disconnected(self, connection_id: str) -> None:
        """A connection of a client has ended."""
        if self.is_used:
            self.manager.disconnected(connection_id)

    async def get(self, instance_id: bytes, context: RequestContext) -> Instance:
        """The instance of a client that asks for its subscriptions. Raises KafkaError."""
        instance = await self._instance(instance_id, context)
        self.manager.get(instance, self._host.clock.time_ms())
        return instance

    async def push(self, request: PushTelemetryRequest, context: RequestContext) -> None:
        """Take what a client pushes. Raises KafkaError."""
        from kpybroker.core.client_metrics.manager import RESERVED_IDS, Push

        if request.client_instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A push with an invalid client instance id")
        instance = await self._instance(request.client_instance_id, context)
        size = len(request.metrics)
        push = Push(request.subscription_id, request.terminating, request.compression_type, size)
        self.manager.push(instance, push, self._host.clock.time_ms())
        if not size:
            return
        try:
            await self._export(request, context, instance.subscription.interval_ms)
        except (KafkaError, InvalidMetrics) as error:
            self.manager.not_exported(instance)
            logger.info("Metrics of a client cannot be read: %s", error)
            raise KafkaError(ErrorCode.INVALID_RECORD) from None
        self.manager.exported(instance)

    async def _instance(self, instance_id: bytes, context: RequestContext) -> Instance:
        from kpybroker.core.client_metrics.subscriptions import Client

        connection = context.connection
        software = connection.client_software_name, connection.client_software_version
        client = Client(context.client_id, *software, connection.client_host, connection.client_port, context.owner)
        async with self._matching:
            now_ms = self._host.clock.time_ms()
            steps = self.manager.instance(instance_id, client, connection.connection_id, now_ms)
            return await run_to_end(paced(steps))

    async def _export(self, request: PushTelemetryRequest, context: RequestContext, interval_ms: int) -> None:
        """Decompress, and hand it to the receiver. Raises KafkaError, InvalidMetrics."""
        limit = self.manager.max_bytes
        unpack = partial(decompress, Codec(request.compression_type), request.metrics, limit)
        is_small = len(request.metrics) < LARGE_BYTES and limit <= UNPACKED_LARGE_BYTES
        if request.compression_type == Codec.NONE or is_small:
            metrics = unpack()
        else:
            metrics = await in_thread(unpack, self._host.slow_work.of(context.connection.turns_of))
        if self.receiver is None or not self._can_read:
            return
        connection = context.connection
        await self.receiver.receive(
            Pushed(
                instance_id=request.client_instance_id,
                client_id=context.client_id or "",
                software_name=connection.client_software_name,
                software_version=connection.client_software_version,
                address=connection.client_host,
                terminating=request.terminating,
                metrics=bytes(metrics),
                interval_ms=interval_ms,
            )
        )

    async def _expire(self) -> None:
        while True:
            await self._host.clock.pause(LOOK_S)
            self.manager.expire(self._host.clock.time_ms())
