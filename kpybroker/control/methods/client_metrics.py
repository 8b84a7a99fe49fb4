"""Metrics that clients push (KIP-714): what has arrived, waiting for it, and asking clients for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.broker.client_metrics.packages import available
from kpybroker.control.errors import ControlError
from kpybroker.control.inside import any_broker, ask, check
from kpybroker.control.methods.faults import check_timeout
from kpybroker.control.registry import JSON, methods
from kpybroker.metrics.clients.series import Client, Distribution, Series
from kpybroker.metrics.clients.text import number_text
from kpybroker.wire.api import ApiKey
from kpybroker.wire.znodes.topics import encode_uuid

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.control.hosted import Hosted

CLIENT_METRICS: Final = 16
"""Kafka's type of the resource."""
SET, DELETE = 0, 1
LOOK_S: Final = 1.0
"""Brokers that started while it is waited for a push are looked at after this time."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which clients; of them only the metrics of this name, if there is one."""

    client_id: str | None = None
    instance_id: str | None = None
    name: str | None = None

    def of(self, hosted: Hosted) -> Iterator[tuple[Broker, Client]]:
        """What the brokers that are up have now, those that pushed last at the end."""
        found = [
            (broker, client)
            for broker in hosted.brokers.values()
            for client in broker.received_metrics.series(self.client_id, self.name)
            if self.instance_id in (None, encode_uuid(client.instance_id))
        ]
        return iter(sorted(found, key=lambda one: one[1].pushed_ms))


ALL: Final = Filter()


async def client_metrics(hosted: Hosted, wanted: Filter = ALL, series: bool = True) -> JSON:
    """The clients that have pushed metrics (KIP-714), each as a broker knows it, with the last value of each series;
    the newest push last. Without `series` only how many there are."""
    return [_client(broker, client, series) for broker, client in wanted.of(hosted)]


async def wait_client_metrics(hosted: Hosted, wanted: Filter, pushes: int = 1, timeout_ms: int = 10_000) -> JSON:
    """Wait until such a client has pushed so many times, and has a metric of the name, if one is given; that client."""
    with trio.move_on_after(check_timeout("wait_client_metrics", timeout_ms)):
        while True:
            for broker, client in wanted.of(hosted):
                if client.pushes >= pushes and (client.series or wanted.name is None):
                    return _client(broker, client, True)
            await _wait_push(hosted)
    seen = ", ".join(f"{client.client_id} ({client.pushes} pushes)" for _, client in ALL.of(hosted)) or "none"
    raise ControlError(
        f"no such client has pushed its metrics {pushes} times within {timeout_ms} ms; those that have pushed: {seen}",
        "ask for them with subscribe_client_metrics, and use a client with metrics on (`enable.metrics.push`)",
        status=408,
    )


async def _wait_push(hosted: Hosted) -> None:
    """Return after a push to any broker that is up, or after `LOOK_S`."""

    async def first(broker: Broker) -> None:
        await broker.received_metrics.wait_push()
        nursery.cancel_scope.cancel()

    with trio.move_on_after(LOOK_S):
        async with trio.open_nursery() as nursery:
            for broker in hosted.brokers.values():
                nursery.start_soon(first, broker)
            await trio.sleep_forever()


async def subscribe_client_metrics(
    hosted: Hosted,
    subscription: str = "test",
    metrics: list[str] | None = None,
    interval_ms: int = 1000,
    match: list[str] | None = None,
) -> JSON:
    """Ask clients for the metrics with these prefixes, every `interval_ms`; by default for all of Kafka's. `match` is
    as in `client_id=orders.*`. The same `subscription` is changed; with an empty list of metrics it is removed."""
    from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest as Request

    missing = available()
    if missing is not None:
        raise ControlError("no client is asked for its metrics", missing, status=409)
    chosen = ["org.apache.kafka."] if metrics is None else metrics
    values = {"metrics": ",".join(chosen), "interval.ms": str(interval_ms), "match": ",".join(match or ())}
    changes = [
        Request.AlterableConfig(name=name, config_operation=SET if chosen and value else DELETE, value=value or None)
        for name, value in values.items()
    ]
    resource = Request.AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=subscription, configs=changes)
    broker = any_broker(hosted)
    response = await ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, Request(resources=[resource]))
    found = response.responses[0]
    check(found.error_code, f"changing the subscription {subscription}", found.error_message)


def _client(broker: Broker, client: Client, series: bool) -> JSON:
    return {
        "instance_id": encode_uuid(client.instance_id),
        "client_id": client.client_id,
        "software_name": client.software_name,
        "software_version": client.software_version,
        "address": client.address,
        "broker": broker.node_id,
        "resource": dict(client.resource),
        "since_ms": client.since_ms,
        "pushed_ms": client.pushed_ms,
        "pushes": client.pushes,
        "is_terminated": client.is_terminated,
        "left_out": client.left_out,
        "series": [_series(one) for one in client.series] if series else len(client.series),
    }


def _series(series: Series) -> JSON:
    found = {
        "name": series.name,
        "labels": dict(series.labels),
        "kind": series.kind.value,
        "value": _number(series.number),
        "unit": series.unit,
        "description": series.description,
    }
    value = series.value
    if isinstance(value, Distribution):
        found |= {"sum": _number(value.sum), "at": list(value.at), "values": list(map(_number, value.values))}
    return found


def _number(number: int | float) -> JSON:
    """JSON has no NaN and no infinity: they are texts."""
    return number if isinstance(number, int) or math.isfinite(number) else number_text(number)


METHODS = methods(client_metrics, wait_client_metrics, subscribe_client_metrics)
