"""Clients that push their own metrics (KIP-714), as Kafka 4.3's ``ClientMetricsManager`` counts them.

Kafka has all but the first three by client instance; here they are of all instances together.
"""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

MANAGER: Final = Table("kafka.server", "client-metrics")
INSTANCES: Final = MANAGER.attribute(
    "instance-count", "instances", "Instances of clients that ask which metrics to push, or push them."
)
UNKNOWN_SUBSCRIPTIONS: Final = MANAGER.attribute(
    "unknown-subscription-request-count",
    "requests",
    "Pushes since the start by clients that do not know of a change of subscriptions yet.",
)
UNKNOWN_SUBSCRIPTION_RATE: Final = MANAGER.attribute(
    "unknown-subscription-request-rate", "requests/s", "The same a second, of the last half minute."
)
THROTTLES: Final = MANAGER.attribute(
    "throttle-count",
    "requests",
    "Requests since the start that arrived before their interval had passed.",
    "It grows: a client does not keep to the interval, or several share the id of an instance.",
)
THROTTLE_RATE: Final = MANAGER.attribute("throttle-rate", "requests/s", "The same a second, of the last half minute.")
EXPORTS: Final = MANAGER.attribute("plugin-export-count", "pushes", "Pushes since the start that were received.")
EXPORT_RATE: Final = MANAGER.attribute("plugin-export-rate", "pushes/s", "The same a second, of the last half minute.")
ERRORS: Final = MANAGER.attribute(
    "plugin-error-count",
    "pushes",
    "Pushes since the start that could not be read.",
    "It grows: a client sends anything but OTLP, or more than telemetry.max.bytes when it is decompressed.",
)
ERROR_RATE: Final = MANAGER.attribute("plugin-error-rate", "pushes/s", "The same a second, of the last half minute.")

FAMILIES: Final = tuple(MANAGER)
