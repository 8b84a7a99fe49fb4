"""What an argument may be: each function is a `type` of argparse that says what is wrong in the words of its user."""

from __future__ import annotations

import argparse
import re
import socket
from datetime import datetime
from typing import NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kpybroker.pipelines.errors import PipelineError

_UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DURATION = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?")
_OFFSET = re.compile(r"[A-Za-z0-9._-]{1,249}:\d{1,9}:\d{1,18}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Parser(argparse.ArgumentParser):
    """Raises `PipelineError` for a wrong argument."""

    def error(self, message: str) -> NoReturn:
        """argparse's own text, with where to look."""
        raise PipelineError(f"{message[:1].upper()}{message[1:]}.", f"{self.prog} --help lists all options.", 2)


def duration(text: str) -> str:
    """A length of time as Spark writes it, above zero: `90 seconds`, `10 minutes`, `1 hour`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a duration: write '90 seconds', '10 minutes', '1 hour'")
    return text.strip()


def seconds(text: str) -> int:
    """The length of what `duration` has accepted."""
    found = _DURATION.fullmatch(text)
    assert found is not None, text
    return int(found[1]) * _UNIT_SECONDS[found[2]]


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return int(text)


def positive_number(text: str) -> float:
    """A number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return number


def topic(text: str) -> str:
    """A topic's name."""
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise argparse.ArgumentTypeError(f"'{text}' is not a topic name: letters, digits, '.', '_', '-', at most 249")
    return text


def topics(text: str) -> tuple[str, ...]:
    """Topics with commas between them, each once."""
    return tuple(dict.fromkeys(topic(one.strip()) for one in text.split(",")))


def start(text: str) -> str:
    """`earliest`, `latest`, an ISO 8601 time, or TOPIC:PARTITION:OFFSET, several with commas between them."""
    if text in ("earliest", "latest"):
        return text
    if all(map(is_offset, text.split(","))):
        return text
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no start: write earliest, latest, 2024-03-05T08:00:00Z, or TOPIC:PARTITION:OFFSET"
        ) from None
    return text


def is_offset(text: str) -> bool:
    """Whether it is TOPIC:PARTITION:OFFSET. `2024-03-05T08:00:00` is not: it is a time."""
    return _OFFSET.fullmatch(text) is not None and not _TIME.match(text)


def offsets(text: str) -> dict[str, dict[int, int]]:
    """Topic -> partition -> offset of what `start` has accepted as offsets."""
    found: dict[str, dict[int, int]] = {}
    for one in text.split(","):
        name, partition, offset = one.rsplit(":", 2)
        found.setdefault(name, {})[int(partition)] = int(offset)
    return found


def moment(text: str) -> str:
    """An ISO 8601 time; without a zone it is in that of --timezone."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time, such as 2024-03-05T08:00:00Z") from None
    return text


def milliseconds(text: str, zone: str) -> int:
    """Since 1970, of what `moment` has accepted."""
    found = datetime.fromisoformat(text)
    found = found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(zone))
    return round(found.timestamp() * 1000)


def pair(text: str) -> tuple[str, str]:
    """KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def timezone(text: str) -> str:
    """A zone of the time zone database."""
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time zone, such as UTC or Europe/Oslo") from None
    return text


def unreachable(addresses: str, timeout_s: float) -> list[str]:
    """Why none of HOST:PORT, several with commas between them, accepts a connection; empty where one does."""
    reasons = []
    for one in addresses.split(","):
        host, _, port = one.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
        except (OSError, ValueError, OverflowError) as error:
            reasons.append(f"{one}: {getattr(error, 'strerror', None) or error}")
        else:
            return []
    return reasons


def bootstrap_servers(text: str) -> str:
    """HOST:PORT, several with commas between them."""
    for one in text.split(","):
        host, colon, port = one.strip().rpartition(":")
        if not host or not colon or not port.isdecimal() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"'{one}' is not HOST:PORT")
    return text
