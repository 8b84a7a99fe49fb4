"""KRaft files: that of one node becomes that of a broker, that of a part of a cluster is refused."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.fix import fix_for
from kpybroker.config.interpret import interpret
from kpybroker.config.sources.kraft import NotOneNode
from kpybroker.config.values import ConfigTextError

KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "2001",
    "controller.quorum.voters": "2001@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    "inter.broker.listener.name": "PLAINTEXT",
}
SERVERS = "controller.quorum.bootstrap.servers"
VOTERS = "controller.quorum.voters"


def test_a_kraft_file_becomes_a_broker() -> None:
    config = BrokerConfig(interpret(KRAFT).props)
    assert config.get_int("broker.id") == 2001
    assert [str(endpoint) for endpoint in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(endpoint) for endpoint in config.advertised_listeners] == ["PLAINTEXT://localhost:9092"]


def test_each_kraft_key_is_accounted_for() -> None:
    texts = "\n".join(note.text for note in interpret(KRAFT).notes)
    for name in ("process.roles", "node.id=2001", "controller.listener.names", "controller.quorum.voters"):
        assert name in texts
    assert "CONTROLLER://:9093 is a controller's listener, not opened" in texts


def test_a_controller_without_a_broker_is_refused() -> None:
    with pytest.raises(ConfigTextError, match="describes a KRaft controller"):
        interpret({"process.roles": "controller"})


@pytest.mark.parametrize(
    "others",
    [
        {},
        {SERVERS: "localhost:9093"},
        {SERVERS: "kafka.example:9093", VOTERS: ""},
        {VOTERS: "2001@anything:1"},
    ],
)
def test_the_only_voter_is_one_node(others: dict[str, str]) -> None:
    given = {key: value for key, value in (KRAFT | others).items() if value}
    assert BrokerConfig(interpret(given).props).get_int("broker.id") == 2001


PARTS_OF_A_CLUSTER = [
    ({"process.roles": "broker"}, "process.roles=broker describes a broker whose KRaft controller is another node"),
    ({VOTERS: "1@a:1,2001@b:1,3@c:1"}, f"{VOTERS} names 3 nodes"),
    ({SERVERS: "a:9093, b:9093"}, f"{SERVERS} names 2 nodes"),
    ({VOTERS: "1@controller:9093"}, f"{VOTERS}=1@controller:9093 is another node than node.id=2001"),
    ({VOTERS: "", SERVERS: "controller:29093"}, f"{SERVERS}=controller:29093 is not this node's controller listener"),
]


@pytest.mark.parametrize(("others", "cause"), PARTS_OF_A_CLUSTER)
def test_a_part_of_a_cluster_is_refused_with_what_to_do(others: dict[str, str], cause: str) -> None:
    with pytest.raises(NotOneNode) as caught:
        interpret(KRAFT | others)
    assert cause in str(caught.value)
    fix = fix_for(caught.value)
    assert "zookeeper.connect" in fix
    assert "--processes" in fix
    assert caught.value.name in fix


@pytest.mark.parametrize(("others", "_cause"), PARTS_OF_A_CLUSTER)
def test_it_starts_where_its_brokers_find_each_other(others: dict[str, str], _cause: str) -> None:
    with_zookeeper = interpret(KRAFT | others | {"zookeeper.connect": "zk:2181"})
    assert BrokerConfig(with_zookeeper.props).get_int("broker.id") == 2001
    assert BrokerConfig(interpret(KRAFT | others, alone=False).props).get_int("broker.id") == 2001
    meant = interpret(KRAFT | others | {"zookeeper.connect": ""})
    assert BrokerConfig(meant.props).get_int("broker.id") == 2001
