"""Options and ini settings of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from kpybroker.pytest_plugin import marker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kpybroker.testing.clients import GroupProtocol

Scope = Literal["session", "module", "class", "function"]
SCOPES: Final[tuple[Scope, ...]] = ("session", "module", "class", "function")
PROTOCOLS: Final[tuple[GroupProtocol, ...]] = ("classic", "consumer")
CHOICES: Final = (*PROTOCOLS, "both")
POLICIES: Final = ("fail", "warn")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kafka-bootstrap`, `--kafka-broker-scope` and the ini settings."""
    group = parser.getgroup("kafka", "a Kafka broker for tests (kpybroker)")
    group.addoption(
        "--kafka-bootstrap",
        metavar="HOST:PORT[,...]",
        help="run the tests on this Kafka cluster instead of starting a broker; tests of faults and time are skipped",
    )
    group.addoption(
        "--kafka-broker-scope", choices=SCOPES, help="how long one kafka_broker lives; overrides kafka_broker_scope"
    )
    group.addoption(
        "--kafka-group-protocol",
        choices=CHOICES,
        help="run each test that takes a broker with this group protocol, or with both; overrides kafka_group_protocol",
    )
    group.addoption(
        "--kafka-unused-faults",
        choices=POLICIES,
        help="what a fault does that never acted until its test ended: fail it, or warn; overrides kafka_unused_faults",
    )
    parser.addini("kafka_unused_faults", "what a fault does that never acted: fail (the default) or warn", default="")
    parser.addini("kafka_group_protocol", "group protocol of consumers: classic, consumer, both", default="")
    parser.addini("kafka_broker_extra_config", "keys of the broker, one `key=value` a line", "linelist", [])
    parser.addini("kafka_broker_tls", "whether brokers have TLS, with certificates of their own", "bool", False)
    parser.addini("kafka_broker_sasl", "how clients log in: plain, scram, oauthbearer", default="")
    parser.addini("kafka_broker_acl", "whether clients may only do what ACLs allow", "bool", False)
    parser.addini("kafka_broker_scope", "how long one kafka_broker lives: session, module, class, function", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and check what is given. Raises UsageError."""
    config.addinivalue_line("markers", marker.TEXT)
    address = external(config)
    if address is not None:
        check_addresses(address)
    unused_faults(config)


def check_addresses(text: str) -> None:
    """Raises UsageError where `--kafka-bootstrap` is not HOST:PORT, or several with commas."""
    for one in text.split(","):
        host, colon, port = one.strip().rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise pytest.UsageError(f"--kafka-bootstrap={text}: {one!r} is not HOST:PORT, such as localhost:9092")


def unused_faults(config: pytest.Config) -> str:
    """What a fault does that never acted. Raises UsageError."""
    chosen: str = config.getoption("--kafka-unused-faults") or config.getini("kafka_unused_faults") or POLICIES[0]
    if chosen not in POLICIES:
        raise pytest.UsageError(f"kafka_unused_faults is {chosen!r}: choose {', '.join(POLICIES)}")
    return chosen


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the cluster that the tests run on, if it is not one of the plugin."""
    bootstrap = external(config)
    return None if bootstrap is None else f"kafka: tests run on {bootstrap}"


def external(config: pytest.Config) -> str | None:
    """The cluster that was named by `--kafka-bootstrap`."""
    found: str | None = config.getoption("--kafka-bootstrap")
    return found


def scope(config: pytest.Config) -> Scope:
    """The scope of `kafka_broker`. Raises UsageError."""
    chosen = config.getoption("--kafka-broker-scope") or config.getini("kafka_broker_scope") or "session"
    for known in SCOPES:
        if chosen == known:
            return known
    raise pytest.UsageError(f"kafka_broker_scope is {chosen!r}: choose {', '.join(SCOPES)}")


def group_protocols(config: pytest.Config) -> tuple[GroupProtocol, ...]:
    """Those of `--kafka-group-protocol`; none where it is not given. Raises UsageError."""
    chosen = config.getoption("--kafka-group-protocol") or config.getini("kafka_group_protocol")
    if not chosen:
        return ()
    if chosen not in CHOICES:
        raise pytest.UsageError(f"kafka_group_protocol is {chosen!r}: choose {', '.join(CHOICES)}")
    return PROTOCOLS if chosen == "both" else (chosen,)


def broker_scope(fixture_name: str, config: pytest.Config) -> Scope:
    """For `pytest.fixture(scope=...)`."""
    return scope(config)


def security(config: pytest.Config) -> dict[str, Any]:
    """The arguments of `Broker` by `kafka_broker_tls`, `kafka_broker_sasl` and `kafka_broker_acl`."""
    try:
        found = {name: config.getini(f"kafka_broker_{name}") for name in ("tls", "sasl", "acl")}
    except ValueError as error:
        raise pytest.UsageError(f"kafka_broker_tls and kafka_broker_acl are true or false: {error}") from None
    return {name: value for name, value in found.items() if value}


def extra_config(config: pytest.Config) -> Mapping[str, str]:
    """The keys of `kafka_broker_extra_config`. Raises UsageError."""
    found: dict[str, str] = {}
    for line in config.getini("kafka_broker_extra_config"):
        key, equals, value = line.partition("=")
        if key.strip() in found:
            raise pytest.UsageError(f"kafka_broker_extra_config: {key.strip()} is there twice")
        if not equals or not key.strip():
            raise pytest.UsageError(f"kafka_broker_extra_config: {line!r} is not `key=value`")
        found[key.strip()] = value.strip()
    return found
