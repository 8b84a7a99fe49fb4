"""What the commands make of their options: overrides, log levels, listeners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kpybroker.cli.exit_codes import EXIT_CONFIG, fail
from kpybroker.control.development.security import SecurityOptions


class DevOptions(NamedTuple):
    """The options of `kpybroker dev`, by the names that click gives them."""

    port: int
    host: str
    data_dir: str | None = None
    ephemeral: bool = False
    overrides: Sequence[str] = ()
    log_format: str = "text"
    log_level: str | None = None
    brokers: int = 1
    control: int | None = None
    exit_with: int | None = None
    ephemeral_dir: str | None = None
    sasl: str | None = None
    acl: bool = False
    tls: bool = False
    console: int | None = None
    registry: int | None = None
    zookeeper_port: int | None = None
    processes: bool = False
    kafka_version: str | None = None

    @property
    def security(self) -> SecurityOptions:
        """What `--tls`, `--sasl` and `--acl` ask for together."""
        return SecurityOptions(self.tls, self.sasl, self.acl).complete()


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """The values of `--override KEY=VALUE` by key. Ends the process with EXIT_CONFIG for any other form."""
    props: dict[str, str] = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            fail(f"--override {override} has no key and value", "write --override KEY=VALUE", EXIT_CONFIG)
        props[name.strip()] = value.strip()
    return props


def python_level(level: str) -> str:
    """Kafka's name of a log level as Python's."""
    return "WARNING" if level == "WARN" else level


def listener(host: str, port: int, protocol: str = "PLAINTEXT") -> str:
    """The value of `listeners` for one listener; an IPv6 host is put in brackets."""
    return f"{protocol}://[{host}]:{port}" if ":" in host else f"{protocol}://{host}:{port}"
