"""Listener keys: parsing, names, ports, protocols that are served."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.interpret import interpret
from kpybroker.config.listeners import Endpoint, parse_endpoints, parse_map, security_protocol_map
from kpybroker.config.values import ConfigError

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "INSIDE": "PLAINTEXT", "SSL": "SSL"}


def test_several_listeners_with_names_and_families() -> None:
    text = "plaintext://:9092, INSIDE://[::1]:9093,PLAINTEXT_X://a-b.example:0"
    endpoints = parse_endpoints("listeners", text, PROTOCOLS | {"PLAINTEXT_X": "PLAINTEXT"})
    assert endpoints == (
        Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092),
        Endpoint("INSIDE", "PLAINTEXT", "::1", 9093),
        Endpoint("PLAINTEXT_X", "PLAINTEXT", "a-b.example", 0),
    )
    assert [str(endpoint) for endpoint in endpoints][1] == "INSIDE://[::1]:9093"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("PLAINTEXT//:9092", "Unable to parse PLAINTEXT//:9092 to a broker endpoint"),
        ("PLAINTEXT://host", "Unable to parse PLAINTEXT://host to a broker endpoint"),
        ("OTHER://:1", "No security protocol defined for listener OTHER"),
        ("PLAINTEXT://:70000", "70000 is not a port"),
        ("PLAINTEXT://:1,PLAINTEXT://:2", "Each listener must have a different name"),
    ],
)
def test_a_bad_listener_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, check=lambda error: error.reason == reason):
        parse_endpoints("listeners", text, PROTOCOLS)


def test_a_port_is_shared_by_one_ipv4_and_one_ipv6_address_only() -> None:
    names = "listener.security.protocol.map"
    mapping = {names: "A:PLAINTEXT,B:PLAINTEXT", "inter.broker.listener.name": "A"}
    assert len(BrokerConfig({"listeners": "A://127.0.0.1:9092,B://[::1]:9092", **mapping}).listeners) == 2
    with pytest.raises(ConfigError, match="must have a different port"):
        BrokerConfig({"listeners": "A://127.0.0.1:9092,B://localhost:9092", **mapping})
    assert len(BrokerConfig({"listeners": "A://:0,B://:0", **mapping}).listeners) == 2


def test_names_are_case_insensitive_and_protocols_checked() -> None:
    assert security_protocol_map("inside:plaintext") == {"INSIDE": "PLAINTEXT"}
    with pytest.raises(ConfigError, match="Invalid security protocol `TLS`"):
        security_protocol_map("INSIDE:TLS")
    with pytest.raises(ConfigError, match="more than once"):
        security_protocol_map("A:SSL,a:SSL")


def test_a_listener_of_a_kraft_controller_needs_no_security_protocol() -> None:
    file = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "A://:9092,CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "A:PLAINTEXT",
        "inter.broker.listener.name": "A",
    }
    config = BrokerConfig(interpret(file).props)
    assert config.security_protocols == security_protocol_map("a:plaintext") == {"A": "PLAINTEXT"}
    assert [endpoint.listener_name for endpoint in config.listeners] == ["A"]


def test_a_map_keeps_colons_of_its_names() -> None:
    assert parse_map("k", "fe80::1:5, h:6") == {"fe80::1": "5", "h": "6"}
    with pytest.raises(ConfigError, match="not of the form name:value"):
        parse_map("k", "h")


def test_advertised_listeners_are_those_given() -> None:
    assert BrokerConfig().advertised_listeners == ()
    config = BrokerConfig({"advertised.listeners": "PLAINTEXT://example.org:9092"})
    assert config.advertised_listeners == (Endpoint("PLAINTEXT", "PLAINTEXT", "example.org", 9092),)
