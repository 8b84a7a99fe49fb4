"""The reporters that a broker's configuration asks for. What cannot work ends the start: cause and fix."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from kpybroker import __version__
from kpybroker.broker.client_metrics.packages import missing
from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.metrics.reporters.graphite import GraphiteReporter
from kpybroker.broker.metrics.reporters.periodic import Periodic
from kpybroker.metrics.graphite import DIMENSIONS, Layout, is_sent
from kpybroker.metrics.spelling import Spelling

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured
    from kpybroker.broker.metrics.ticker import Ticker
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.metrics.mbeans import Family
    from kpybroker.metrics.reading import Reading

    Filter = Callable[[Family], bool]
    Read = Callable[[Filter], Awaitable[Sequence[Reading]]]

OTLP_PATH: Final = "/v1/metrics"
OTLP_PACKAGES: Final = ("httpx", "opentelemetry.proto")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")


def reporters(broker: Measured, read: Read, ticker: Ticker) -> list[Periodic]:
    """Those that are on; `read` reads what is wanted. Raises StartupError."""
    found = []
    if broker.config.reports_to_graphite:
        found.append(_graphite(broker, read, ticker))
    if broker.config.get_str("kpybroker.otlp.endpoint"):
        found.append(_otlp(broker, read, ticker))
    return found


def _graphite(broker: Measured, read: Read, ticker: Ticker) -> Periodic:
    config = broker.config
    host, port = config.get_str("kafka.graphite.metrics.host"), config.get_int("kafka.graphite.metrics.port")
    exclude = config.get_str("kafka.graphite.metrics.exclude.regex")
    suffixes = [
        suffix for name, suffix in DIMENSIONS.items() if config.get_bool(f"kafka.graphite.dimension.enabled.{name}")
    ]
    layout = Layout(
        config.get_str("kafka.graphite.metrics.group"),
        re.compile(exclude) if exclude else None,
        frozenset(suffixes),
    )
    reporter = GraphiteReporter(host, port, layout, lambda: read(is_sent), ticker)
    return Periodic(
        broker,
        config.get_int("kafka.metrics.polling.interval.secs"),
        reporter.report,
        f"Graphite at {host}:{port}",
        "start it there, or change kafka.graphite.metrics.host and kafka.graphite.metrics.port",
    )


def _otlp(broker: Measured, read: Read, ticker: Ticker) -> Periodic:
    config = broker.config
    names = missing(OTLP_PACKAGES)
    if names:
        raise StartupError(
            f"kpybroker.otlp.endpoint needs packages that are not installed: {', '.join(names)}",
            "pip install 'kpybroker[otlp]', or leave kpybroker.otlp.endpoint out",
            EXIT_CONFIG,
        )
    from kpybroker.broker.metrics.reporters.otlp import OtlpReporter, Sent

    url = otlp_url(config.get_str("kpybroker.otlp.endpoint"))
    headers = otlp_headers(config)
    spelling = Spelling(config.get_str("kpybroker.metrics.spelling"))
    sent = Sent(spelling, lambda: read(lambda family: True), broker.received_metrics.series)
    reporter = OtlpReporter(url, headers, sent, lambda: _resource(broker), ticker.clock)
    return Periodic(
        broker,
        config.get_int("kpybroker.otlp.interval.ms") / 1000,
        reporter.report,
        url,
        "start an OTLP receiver there, or change kpybroker.otlp.endpoint and kpybroker.otlp.headers",
    )


def _resource(broker: Measured) -> Mapping[str, str]:
    return {
        "service.name": "kpybroker",
        "service.version": __version__,
        "service.instance.id": f"{broker.cluster_id}/{broker.node_id}",
    }


def otlp_url(endpoint: str) -> str:
    """Where to POST: as OTEL_EXPORTER_OTLP_ENDPOINT, without the path of metrics. Raises StartupError."""
    try:
        parts = urlsplit(endpoint)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_good = is_good and not parts.query and not parts.fragment and endpoint.isascii() and endpoint.isprintable()
    except ValueError:
        is_good = False
    if is_good and parts.username is None:
        path = parts.path.rstrip("/").removesuffix(OTLP_PATH)
        return parts._replace(path=path + OTLP_PATH).geturl()
    if is_good:
        cause, fix = "has a user or a password", "put credentials into kpybroker.otlp.headers"
    else:
        cause, fix = "is not the address of a server", "write it as http://HOST:PORT, e.g. http://localhost:4318"
    raise StartupError(f"kpybroker.otlp.endpoint {cause}", fix, EXIT_CONFIG)


def otlp_headers(config: BrokerConfig) -> dict[str, str]:
    """`name=value,...` with values as in a URL, as OTEL_EXPORTER_OTLP_HEADERS. Raises StartupError without values."""
    headers: dict[str, str] = {}
    entries = config.get_str("kpybroker.otlp.headers").split(",")
    for number, entry in enumerate(entries, 1):
        if not entry.strip():
            continue
        name, equals, value = (part.strip() for part in entry.partition("="))
        value = unquote(value)
        if not equals or not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise StartupError(
                f"kpybroker.otlp.headers: header {number} of {len(entries)} is not NAME=VALUE",
                "write NAME=VALUE with commas in between, and what is special in a value as in a URL: "
                "Authorization=Bearer%20TOKEN",
                EXIT_CONFIG,
            )
        headers[name] = value
    return headers
