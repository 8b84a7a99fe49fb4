"""Values that conflict are refused with Kafka's error texts."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.values import ConfigConflict, ConfigError

TWO = {"listeners": "A://127.0.0.1:1,B://127.0.0.1:2", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}


@pytest.mark.parametrize(
    ("props", "sentence"),
    [
        ({"broker.id": "1", "node.id": "2"}, "You must set `node.id` to the same value as `broker.id`."),
        ({"broker.id": "1001"}, "not greater than reserved.broker.max.id"),
        ({"broker.id": "-2"}, "broker.id must be greater than or equal to -1"),
        ({"broker.id.generation.enable": "false"}, "broker.id must be greater than or equal to 0"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ({"log.dir": ""}, "At least one log directory must be defined"),
        (
            {"log.dirs": "/a,/b", "cordoned.log.dirs": "/b,/c"},
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : /c",
        ),
        ({"cordoned.log.dirs": "*,/c"}, "When cordoned.log.dirs is set to *, it must not contain other values"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "at least 1MB per cleaner thread"),
        ({"replica.fetch.wait.max.ms": "30001"}, "replica.socket.timeout.ms should always be at least"),
        ({"replica.lag.time.max.ms": "499"}, "less than or equal to replica.lag.time.max.ms"),
        ({"group.consumer.session.timeout.ms": "1"}, "must be greater than or equal to group.consumer.min.session"),
        ({"group.consumer.heartbeat.interval.ms": "15001"}, "must be less than or equal to group.consumer.max.heart"),
        ({"group.consumer.min.session.timeout.ms": "60001"}, "group.consumer.max.session.timeout.ms must be greater"),
        ({"group.consumer.assignors": ""}, "group.consumer.assignors must name at least one assignor"),
        ({"listeners": ""}, "There must be at least one broker advertised listener."),
        (TWO, "inter.broker.listener.name must be a listener name defined in advertised.listeners"),
        (
            {**TWO, "inter.broker.listener.name": "A", "security.inter.broker.protocol": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
        (
            {"inter.broker.listener.name": "C"},
            "Listener with name C defined in inter.broker.listener.name not found in listener.security.protocol.map.",
        ),
        (
            {**TWO, "advertised.listeners": "A://h:1,PLAINTEXT://h:3"},
            "No security protocol defined for listener PLAINTEXT",
        ),
        (
            {
                "listeners": "A://127.0.0.1:1",
                "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
                "inter.broker.listener.name": "A",
                "advertised.listeners": "A://h:1,B://h:2",
            },
            "must be equal to or a subset of the ones defined in listeners. Found A,B.",
        ),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "cannot use the nonroutable meta-address 0.0.0.0"),
        ({"control.plane.listener.name": "X"}, "control.plane.listener.name must be a listener name defined in"),
        ({"control.plane.listener.name": "PLAINTEXT"}, "should have a different value from the inter broker"),
        ({"queued.max.request.bytes": "1"}, "must be larger or equal to socket.request.max.bytes"),
        ({"max.connections.per.ip": "0"}, "can be set to zero only if"),
        ({"max.connections.per.ip.overrides": "127.0.0.1:x"}, "`x` for 127.0.0.1 is not a number"),
        ({"max.connections.per.ip.overrides": "a b:1"}, "contains invalid addresses : a b"),
        ({"kpybroker.zookeeper.port": "0", "zookeeper.set.acl": "true"}, "yet zookeeper.set.acl is true"),
        ({"kpybroker.zookeeper.port": "0", "zookeeper.connect": "h:1"}, "with zookeeper.connect there is none"),
        ({"connections.max.idle.ms": "100"}, "should always be less than connections.max.idle.ms=100"),
    ],
)
def test_conflicting_values_are_refused(props: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(props)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "props",
    [
        {**TWO, "inter.broker.listener.name": "b"},
        {"queued.max.request.bytes": "-1"},
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5,example.org:6"},
        {"connections.max.idle.ms": "-1"},
        {"broker.id": "5000", "broker.id.generation.enable": "false"},
        {"log.cleaner.threads": "0"},
    ],
)
def test_values_that_fit_together_are_accepted(props: dict[str, str]) -> None:
    BrokerConfig(props)


def test_the_error_names_the_key_to_change() -> None:
    with pytest.raises(ConfigConflict) as caught:
        BrokerConfig({"log.roll.ms": "0"})
    assert caught.value.name == "log.roll.ms"
