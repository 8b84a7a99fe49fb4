"""The control channel of a development broker: the requests that arrived, faults, metrics of clients, the clock.

A thin client over `kpybroker.testing`'s channel. What never lives here: a rule of the broker; it checks them itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.console.queries.decoding import visible
from kpybroker.console.queries.pages import by_keys
from kpybroker.testing.errors import BrokerGone, TestingError
from kpybroker.testing.running.channel import Channel

SHOWN_MAX: Final = 100
"""Requests on a page."""
BODY_MAX: Final = 8000
"""Characters of a decoded request or response."""
TEXT_MAX: Final = 64 * 1024
UNITS: Final = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
ACTS: Final = {
    "error": "fails with the error",
    "delay_ms": "is delayed, in milliseconds",
    "disconnect": "loses its connection: before, after",
    "throttle_ms": "says to throttle, in milliseconds",
    "hold": "is held until released",
    "never_answer": "gets no response",
    "blackhole": "makes its client be ignored",
    "observe": "is only counted",
}
"""What a fault does, and what the form says of it; in Kafka's words where it has some."""
FLAGS: Final = frozenset({"hold", "never_answer", "blackhole", "observe"})
NUMBERS: Final = frozenset({"delay_ms", "throttle_ms"})


def parse_address(text: str) -> tuple[str, int]:
    """The host and port of `http://HOST:PORT`. Raises CommandError."""
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        if parts.scheme in ("", "http") and parts.hostname and parts.port and parts.path in ("", "/"):
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise usage(f"--control {text} is no address", "give what the broker prints: http://127.0.0.1:PORT")


class Control:
    """Calls of one channel, from any thread; every failure is a CommandError."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._channel = Channel(*address, lambda: None)

    def call(self, method: str, **arguments: Any) -> Any:
        """The method's result."""
        try:
            return self._channel.call(method, **arguments)
        except BrokerGone as error:
            raise CommandError(error.cause, "start the broker with --control, and name its address") from None
        except TestingError as error:
            raise usage(error.cause, error.fix) from None


def metrics_addresses(control: Control) -> list[str]:
    """Where the brokers that are up serve their metrics. Raises CommandError if none does."""
    found = [one["metrics"] for one in control.call("status")["brokers"] if one.get("metrics")]
    if not found:
        raise CommandError("the broker serves no metrics", "start it with --override kpybroker.metrics.port=0")
    return found


class RequestFilter(NamedTuple):
    """Which requests a page shows; empty texts ask for nothing."""

    api: str = ""
    client_id: str = ""
    failed: bool = False


def requests(control: Control, wanted: RequestFilter) -> list[dict[str, Any]]:
    """The newest requests, newest first, with their bodies as text. Raises CommandError."""
    arguments: dict[str, Any] = {"limit": SHOWN_MAX}
    if wanted.api:
        arguments["api"] = wanted.api
    if wanted.client_id:
        arguments["client_id"] = wanted.client_id
    found = control.call("requests", **arguments)
    return [
        {**entry, "request": body(entry["request"]), "response": body(entry["response"])}
        for entry in reversed(found)
        if not wanted.failed or entry["errors"] or entry["faults"]
    ]


def body(value: Any) -> str:
    """Decoded fields as text; a dash for what was not kept."""
    if value is None:
        return "-"
    text = visible(json.dumps(value, indent=2, ensure_ascii=False))
    return text if len(text) <= BODY_MAX else f"{text[:BODY_MAX]}\n…"


class Switch(NamedTuple):
    """A fault as the form describes it."""

    api: str
    act: str
    value: str = ""
    topic: str = ""
    client_id: str = ""
    times: str = ""


def rule(switch: Switch) -> dict[str, Any]:
    """The rule that the broker is asked to add. Raises CommandError for what cannot be written as one."""
    if switch.act not in ACTS:
        raise usage(f"{switch.act[:50]!r} is nothing that a fault does", f"one of {', '.join(ACTS)}")
    value: Any = True if switch.act in FLAGS else switch.value.strip()
    if switch.act in NUMBERS:
        value = _number(switch.act, str(value))
    match = {"api": switch.api.strip(), "topic": switch.topic.strip(), "client_id": switch.client_id.strip()}
    found: dict[str, Any] = {"match": {key: text for key, text in match.items() if text}, "act": {switch.act: value}}
    if switch.times.strip():
        found["trigger"] = {"times": _number("times", switch.times.strip())}
    return found


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise usage(f"{name} is not a whole number: {text[:50]!r}", "write one such as 100")
    return int(text)


def faults(control: Control) -> list[dict[str, Any]]:
    """All faults with their rule as text, hits and state. Raises CommandError."""
    state = ("id", "hits", "matches", "holds", "is_over")
    return [
        {
            "rule": visible(json.dumps({key: one[key] for key in one if key not in state}, ensure_ascii=False)),
            **{key: one.get(key) for key in state},
        }
        for one in control.call("faults")
    ]


OF_CLIENTS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **by_keys("client_id", "address", "broker", "series", "pushes", "pushed_ms"),
    "software": lambda row: (row["software_name"] or "", row["software_version"] or ""),
}
"""What the list is sorted by, and that of the series of one."""
OF_SERIES: Final[Mapping[str, Callable[[Any], Any]]] = {
    **by_keys("name", "labels", "kind"),
    "value": lambda row: (isinstance(row["number"], str), row["number"]),
}


def clients(control: Control, client_id: str) -> list[dict[str, Any]]:
    """The clients that have pushed metrics, the newest push first, each with the number of its series."""
    found: list[dict[str, Any]] = control.call("client_metrics", series=False, client_id=client_id or None)
    return found[::-1]


def client(control: Control, instance_id: str, broker: int, text: str) -> dict[str, Any] | None:
    """A client with its series whose name or labels have `text`; None if it is not known any more."""
    for found in control.call("client_metrics", instance_id=instance_id):
        if found["broker"] == broker:
            return {**found, "series": [one for one in map(_series, found["series"]) if text in one["text"]]}
    return None


def _series(series: dict[str, Any]) -> dict[str, Any]:
    labels = ", ".join(f"{name}={value}" for name, value in series["labels"].items())
    value = _digits(series["value"])
    if "sum" in series:
        value = f"{value}, in all {_digits(series['sum'])}"
    shown = {"name": visible(series["name"]), "labels": visible(labels), "value": value, "number": series["value"]}
    return {**series, **shown, "text": f"{series['name']} {labels}"}


def _digits(number: int | float | str) -> int | float | str:
    """Small numbers with what they are: a latency of 0.0445 is not 0."""
    return f"{number:.4g}" if isinstance(number, float) and not number.is_integer() else number


def milliseconds(number: int, unit: str) -> int:
    """A time of the form. Raises CommandError."""
    if unit not in UNITS:
        raise usage(f"{unit[:50]!r} is no unit", f"one of {', '.join(UNITS)}")
    return number * UNITS[unit]
