"""Connections and the event loop, which takes the place of Kafka's network and request handler threads.

`networkProcessor` is always 0: there is one loop.
"""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

_IDLE = "It stays below 0.3: the broker is near its limit; spread partitions over more brokers."

SERVER: Final = Table("kafka.network", "SocketServer")
NETWORK_IDLE: Final = SERVER.gauge(
    "NetworkProcessorAvgIdlePercent", "share", "Share of the last minute in which the loop waited for input.", _IDLE
)
MEMORY_USED: Final = SERVER.gauge("MemoryPoolUsed", "bytes", "Memory of requests in progress.")
MEMORY_AVAILABLE: Final = SERVER.gauge(
    "MemoryPoolAvailable",
    "bytes",
    "What is left of queued.max.request.bytes; the largest long integer without a limit, as in Kafka.",
    "It is 0: reading pauses until requests get their responses.",
)

PROCESSOR: Final = Table("kafka.network", "Processor", ("networkProcessor",))
PROCESSOR_IDLE: Final = PROCESSOR.gauge("IdlePercent", "share", "The same, by network processor.", _IDLE)

ACCEPTOR: Final = Table("kafka.network", "Acceptor", ("listener",))
ACCEPTOR_BLOCKED: Final = ACCEPTOR.meter(
    "AcceptorBlockedPercent",
    "ns",
    "Time in which a listener did not accept, because max.connections is reached.",
    "It grows: clients wait for a connection.",
)

HANDLERS: Final = Table("kafka.server", "KafkaRequestHandlerPool")
HANDLER_IDLE: Final = HANDLERS.share(
    "RequestHandlerAvgIdlePercent",
    "Share of the last minute in which the loop waited for input; where it is a counter, the nanoseconds.",
    _IDLE,
)

SOCKETS: Final = Table("kafka.server", "socket-server-metrics", ("listener", "networkProcessor"))
CONNECTION_COUNT: Final = SOCKETS.attribute(
    "connection-count", "connections", "Open connections.", "It nears max.connections, or the limit of open files."
)
CREATION_TOTAL: Final = SOCKETS.attribute("connection-creation-total", "connections", "Connections accepted.")
CREATION_RATE: Final = SOCKETS.attribute(
    "connection-creation-rate",
    "connections/s",
    "Connections accepted a second, in the last 30 seconds.",
    "It is high without new clients: clients reconnect in a loop.",
)
CLOSE_TOTAL: Final = SOCKETS.attribute("connection-close-total", "connections", "Connections closed.")
CLOSE_RATE: Final = SOCKETS.attribute(
    "connection-close-rate", "connections/s", "Connections closed a second, in the last 30 seconds."
)
CONNECTIONS: Final = SOCKETS.attribute(
    "connections",
    "connections",
    "Open connections by the software that ApiVersions has named (KIP-511).",
    tags=("clientSoftwareName", "clientSoftwareVersion", "listener", "networkProcessor"),
)

FAMILIES: Final = (*SERVER, *PROCESSOR, *ACCEPTOR, *HANDLERS, *SOCKETS)
