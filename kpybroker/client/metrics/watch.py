"""`metrics watch` and `metrics list`.

As in JmxTool the columns are those of the start: an MBean that appears later has none, and one that disappears leaves
its cells empty.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

from kpybroker.client.actions.interrupts import noted_ctrl_c
from kpybroker.client.connect.errors import CommandError, note, usage
from kpybroker.client.metrics import report
from kpybroker.client.metrics.address import DEFAULT, parse_address, read_login
from kpybroker.client.metrics.dates import date_format
from kpybroker.client.metrics.jolokia import Jolokia, NotYet, Number, failed
from kpybroker.client.show.output import write
from kpybroker.metrics.jolokia.names import parse_name
from kpybroker.metrics.jolokia.requests import RequestError

EVERY: Final = "*:*"
PAUSE_S: Final = 0.1
"""Between two attempts of `--wait`."""
OK: Final = "200"
NOT_FOUND: Final = "404"
IN_ERROR: Final = "ERROR: "
"""What Jolokia sends as the value of an attribute that cannot be read."""
DEPTH_MAX: Final = 32
"""Of a value within others."""
NOT_A_NUMBER: Final = "NaN"
"""JSON has no such number: Jolokia sends null."""
AS_THE_SERVER: Final = {"canonicalNaming": "false", "ignoreErrors": "true"}
T = TypeVar("T")


class Source(NamedTuple):
    """Where to read, and how patiently."""

    address: str | None = None
    timeout_s: float = 30.0
    auth_file: str | None = None
    wait_s: float = 0.0

    def jolokia(self) -> Jolokia:
        """Raises CommandError."""
        return Jolokia(parse_address(self.address or DEFAULT), self.timeout_s, read_login(self.auth_file))


class Watch(NamedTuple):
    """What to print. No `attributes`: all. A negative `interval_ms`: once."""

    object_names: Sequence[str] = ()
    attributes: str | None = None
    form: str = report.ORIGINAL
    date_format: str | None = None
    interval_ms: int = 1000
    once: bool = False


class Clock(NamedTuple):
    """`now_s` since the epoch; `monotonic_s` for intervals."""

    now_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


def watch(source: Source, options: Watch, clock: Clock = Clock()) -> int:  # noqa: B008
    """Print the values again and again, until Ctrl-C or a failure. Returns the exit code; raises CommandError."""
    patterns = _patterns(options.object_names)
    written = _time_writer(options.date_format)
    chosen = None if options.attributes is None else frozenset(filter(None, options.attributes.split(",")))
    jolokia = source.jolokia()
    patiently = _Patience(source.wait_s, clock).until_done
    names = patiently(lambda: _names(jolokia, patterns))
    values = patiently(lambda: _values(jolokia, names, chosen))
    if not values:
        which = f"attribute {options.attributes}" if options.attributes else "attribute"
        raise CommandError(f"the MBeans of {', '.join(patterns)} have no {which}", "leave --attributes out to see all")
    keys = report.in_order([*values])
    write(report.header(options.form, keys))
    missing: set[str] = set()
    with suppress(KeyboardInterrupt), noted_ctrl_c() as is_interrupted:
        while not is_interrupted():
            started_s = clock.monotonic_s()
            write(report.row(options.form, written(clock.now_s()), keys, values))
            if options.once or options.interval_ms < 0:
                break
            clock.pause(max(options.interval_ms / 1000 - (clock.monotonic_s() - started_s), 0))
            values = patiently(lambda: _values(jolokia, names, chosen))
            _note_missing(keys, values, missing)
    return 0


def list_names(source: Source, patterns: Sequence[str]) -> int:
    """Print the names that match, in order, one a line. Returns the exit code; raises CommandError."""
    found = _Patience(source.wait_s, Clock()).until_done(lambda: _names(source.jolokia(), _patterns(patterns)))
    write("".join(f"{name}\n" for name in report.in_order([name for names in found.values() for name in names])))
    return 0


def _patterns(names: Sequence[str]) -> list[str]:
    """Raises CommandError for what is not the name of an MBean."""
    for name in names:
        try:
            parse_name(name)
        except RequestError as error:
            cause = f"--object-name {name} is no name of an MBean: {error.message}"
            raise usage(cause, "see kpybroker metrics list for names") from None
    return list(dict.fromkeys(names)) or [EVERY]


def _time_writer(pattern: str | None) -> Callable[[float], str]:
    if pattern is None:
        return lambda now_s: str(int(now_s * 1000))
    written = date_format(pattern)
    return lambda now_s: written(datetime.fromtimestamp(now_s).astimezone())


class _Patience:
    """Tries again what is not there yet, for `wait_s`."""

    def __init__(self, wait_s: float, clock: Clock) -> None:
        self._wait_s = wait_s
        self._clock = clock

    def until_done(self, action: Callable[[], T]) -> T:
        """What the first attempt that succeeds returns. Raises CommandError, of the last one after `wait_s`."""
        deadline_s = self._clock.monotonic_s() + self._wait_s
        while True:
            try:
                return action()
            except NotYet:
                if self._clock.monotonic_s() >= deadline_s:
                    raise
            self._clock.pause(PAUSE_S)


def _names(jolokia: Jolokia, patterns: Sequence[str]) -> dict[str, list[str]]:
    """The names that match each pattern, as the server writes them. Raises CommandError if none do."""
    requests = [{"type": "search", "mbean": pattern, "config": AS_THE_SERVER} for pattern in patterns]
    found: dict[str, list[str]] = {}
    for pattern, response in zip(patterns, jolokia.ask(requests), strict=True):
        if response["status"] != OK:
            raise failed(response)
        names = response.get("value")
        if not isinstance(names, list) or not names:
            fix = "kpybroker metrics list shows those that there are; --wait SECONDS waits for it"
            raise NotYet(f"no MBean matches {pattern}", fix)
        found[pattern] = [str(name) for name in names]
    return found


def _values(jolokia: Jolokia, names: dict[str, list[str]], chosen: frozenset[str] | None) -> dict[str, str]:
    """The values now of the MBeans with these `names`, by `name:attribute`. What is gone is not in it."""
    requests = [{"type": "read", "mbean": pattern, "config": AS_THE_SERVER} for pattern in names]
    found: dict[str, str] = {}
    for (pattern, known), response in zip(names.items(), jolokia.ask(requests), strict=True):
        if response["status"] == NOT_FOUND:
            continue
        if response["status"] != OK or not isinstance(response.get("value"), dict):
            raise failed(response)
        mbeans = response["value"] if parse_name(pattern).is_pattern else {known[0]: response["value"]}
        for name in known:
            for attribute, value in _attributes(mbeans.get(name), chosen):
                found[f"{name}:{attribute}"] = value
    return found


def _attributes(mbean: Any, chosen: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    """Those that can be read, as text. Raises CommandError."""
    if not isinstance(mbean, dict):
        return
    for attribute, value in mbean.items():
        if chosen is not None and attribute not in chosen:
            continue
        if value is None:
            yield attribute, NOT_A_NUMBER
        elif not isinstance(value, str):
            yield attribute, _json(attribute, value)
        elif not value.startswith(IN_ERROR):
            yield attribute, value


def _json(attribute: str, value: Any, depth: int = 0) -> str:
    """What is neither a number nor text, such as the memory of a JVM, as it was sent. Raises CommandError."""
    if depth > DEPTH_MAX:
        cause = f"the attribute {attribute} is nested too deeply to be printed"
        raise CommandError(cause, "leave it out: --attributes")
    if isinstance(value, Number):
        return value
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}:{_json(attribute, inner, depth + 1)}" for key, inner in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_json(attribute, inner, depth + 1) for inner in value) + "]"
    return json.dumps(value)


def _note_missing(keys: Sequence[str], values: dict[str, str], missing: set[str]) -> None:
    """Say once what has disappeared."""
    if gone := [key for key in keys if key not in values and key not in missing]:
        missing.update(gone)
        others = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        note(f"kpybroker: {gone[0]}{others}: not there any more, its cells are empty")
