"""Requests by API: how many, their errors, and how long each stage takes.

Times are sampled: while one API has many requests, one in 64 is timed and counts for the others.
"""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

TABLE: Final = Table("kafka.network", "RequestMetrics", ("request",))

REQUESTS: Final = TABLE.meter(
    "RequestsPerSec", "requests", "Requests received, by API and version.", tags=("request", "version")
)
ERRORS: Final = TABLE.meter(
    "ErrorsPerSec",
    "codes",
    "Error codes in responses, one for each topic or partition that the response names; NONE is no error.",
    "A code other than NONE grows: docs/reference/errors.md says what each means.",
    tags=("request", "error"),
)
QUEUE_TIME: Final = TABLE.histogram(
    "RequestQueueTimeMs",
    "ms",
    "From the end of the loop's wait for input until the request is handled: what other connections took first.",
    "The 99th percentile is above 20 ms: the broker is saturated.",
)
LOCAL_TIME: Final = TABLE.histogram(
    "LocalTimeMs",
    "ms",
    "Time on the event loop for handling the request, waits left out.",
    "It grows: slow disks, or requests that name very many partitions.",
)
REMOTE_TIME: Final = TABLE.histogram(
    "RemoteTimeMs",
    "ms",
    "Waits: for followers (Produce with acks=all), for records (Fetch), for other members (JoinGroup).",
    "That of Produce is high: followers are slow.",
)
THROTTLE_TIME: Final = TABLE.histogram(
    "ThrottleTimeMs", "ms", "How long the client's connection is muted after the response, by a quota."
)
RESPONSE_QUEUE_TIME: Final = TABLE.histogram(
    "ResponseQueueTimeMs", "ms", "From the response until it is handed to the socket for the first time."
)
RESPONSE_SEND_TIME: Final = TABLE.histogram(
    "ResponseSendTimeMs",
    "ms",
    "From there until the socket has taken all of it.",
    "It is high: clients or their networks read slowly, or cold data are read from disks.",
)
TOTAL_TIME: Final = TABLE.histogram(
    "TotalTimeMs",
    "ms",
    "All stages together.",
    "The 99th percentile of Produce is above what its clients tolerate: the other stages show where the time goes.",
)
REQUEST_BYTES: Final = TABLE.histogram("RequestBytes", "bytes", "Size of a request.")

STAGES: Final = (
    QUEUE_TIME,
    LOCAL_TIME,
    REMOTE_TIME,
    THROTTLE_TIME,
    RESPONSE_QUEUE_TIME,
    RESPONSE_SEND_TIME,
    TOTAL_TIME,
)

FAMILIES: Final = tuple(TABLE)
