"""Steps of scripts about client metrics (KIP-714): subscriptions, and clients that ask and push."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from typing import Any

from compat_tests.differential.script import Ask, ask
from compat_tests.differential.scripts.configs import CLIENT_METRICS, DELETE, SET, change
from kpybroker.core.client_metrics.subscriptions import uuid_text
from kpybroker.wire.api import ApiKey
from kpybroker.wire.primitives import unsigned_varint

GET, PUSH, LIST = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY, ApiKey.LIST_CONFIG_RESOURCES

Sub = tuple[str, Sequence[tuple[str, str]]]
"""The name of a subscription, and what it sets."""


def sub(suffix: str, *props: tuple[str, str]) -> list[Sub]:
    """A subscription whose name begins with that of its script."""
    return [("{t}" + suffix, props)]


def sets(*subscriptions: list[Sub]) -> list[Ask]:
    """Make subscriptions, and wait until the broker knows them."""
    steps = []
    for count, (name, props) in enumerate((one for each in subscriptions for one in each), 1):
        steps.append(change(CLIENT_METRICS, name, *((SET, key, value) for key, value in props)))
        steps.append(knows(count))
    return steps


def knows(count: int) -> Ask:
    """Wait until the broker knows so many subscriptions."""
    until: dict[str, Any] = {f"config_resources.{count - 1}.resource_type": CLIENT_METRICS}
    if not count:
        until = {"config_resources": [[]]}
    return ask(LIST, v=1, resource_types=[CLIENT_METRICS], until=until, compared=False)


def lists(*names: str) -> list[Ask]:
    """Wait until the broker knows so many, and compare which."""
    return [knows(len(names)), ask(LIST, v=1, resource_types=[CLIENT_METRICS])]


def ends(*suffixes: str) -> list[Ask]:
    """Remove subscriptions that `sub` has made, and wait until the broker has forgotten all."""
    every = [(DELETE, key, None) for key in ("interval.ms", "metrics", "match")]
    return [*(change(CLIENT_METRICS, "{t}" + suffix, *every) for suffix in suffixes), knows(0)]


def instance(name: str) -> bytes:
    """The id of an instance, one for each name."""
    return md5(name.encode(), usedforsecurity=False).digest()


def gets(name: str, **options: Any) -> Ask:
    """An instance asks for its subscriptions; its subscription id is bound to `id`, unless `bind` says otherwise."""
    return ask(GET, v=0, client_instance_id=instance(name), **{"bind": {"id": "subscription_id"}, **options})


def pushes(name: str, metrics: bytes = b"", **fields: Any) -> Ask:
    """An instance pushes, by default with the id that was bound last."""
    return ask(
        PUSH, **{"v": 0, "client_instance_id": instance(name), "subscription_id": "{id}", "metrics": metrics, **fields}
    )


def metrics_data(size: int) -> bytes:
    """A MetricsData of this many bytes, two at least: one field that no reader knows, and each passes over.

    Ours reads what is pushed; the plug-in next to Kafka takes any bytes.
    """
    length = size - 1
    while 1 + len(unsigned_varint(length)) + length > size:
        length -= 1
    data = bytes([15 << 3 | 2]) + unsigned_varint(length) + bytes(length)
    assert len(data) == size, "a longer length begins here"
    return data


def as_software(name: str, version: str) -> Ask:
    """Say what client software this connection has. What ApiVersions lists is another script's."""
    return ask(ApiKey.API_VERSIONS, v=3, client_software_name=name, client_software_version=version, compared=False)


def matching(name: str) -> str:
    """A pattern that matches this instance alone."""
    return f"client_instance_id={uuid_text(instance(name))}"
