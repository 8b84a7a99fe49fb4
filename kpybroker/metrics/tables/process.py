"""The process, under the names that all of Prometheus' client libraries have."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import FixedTable

TABLE: Final = FixedTable()
CPU: Final = TABLE.counter("process_cpu_seconds_total", (), "s", "Processor time, in user and system mode.")
RESIDENT: Final = TABLE.gauge(
    "process_resident_memory_bytes",
    (),
    "bytes",
    "Memory in use; what Kafka's dashboards show as the JVM's.",
    "It grows.",
)
VIRTUAL: Final = TABLE.gauge("process_virtual_memory_bytes", (), "bytes", "Address space in use.")
OPEN_FDS: Final = TABLE.gauge(
    "process_open_fds",
    (),
    "files",
    "Open file descriptors.",
    "It nears process_max_fds: no more connections or segments.",
)
MAX_FDS: Final = TABLE.gauge("process_max_fds", (), "files", "The limit of open file descriptors.")
START_TIME: Final = TABLE.gauge("process_start_time_seconds", (), "s", "Start of the process, since the epoch.")

FAMILIES: Final = tuple(TABLE)
