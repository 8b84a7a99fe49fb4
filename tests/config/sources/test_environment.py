"""KAFKA_* variables of the container images."""

from __future__ import annotations

import pytest

from kpybroker.config.sources.environment import key_of, keys_from_environment, listeners_behind


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_LOG_RETENTION_HOURS", "log.retention.hours"),
        ("KAFKA_A__B", "a_b"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_CFG_NODE_ID", "node.id"),
    ],
)
def test_names_are_mapped_as_the_images_do(variable: str, key: str) -> None:
    assert key_of(variable) == key


def test_variables_of_the_jvm_and_the_scripts_are_not_keys() -> None:
    environment = {
        "KAFKA_NUM_PARTITIONS": " 3 ",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "DEBUG",
        "KAFKA_JVM_PERFORMANCE_OPTS": "-server",
        "KAFKA_": "",
        "PATH": "/bin",
    }
    keys, without_effect = keys_from_environment(environment)
    assert keys == {"num.partitions": "3"}
    assert without_effect == ["KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_LOG4J_ROOT_LOGLEVEL"]


@pytest.mark.parametrize(
    ("options", "file", "has_more"),
    [
        ("-Djava.security.auth.login.config=/etc/jaas.conf", "/etc/jaas.conf", False),
        (" -Djava.security.auth.login.config==/etc/jaas.conf ", "/etc/jaas.conf", False),
        ("-Xdebug -Djava.security.auth.login.config='/my files/j'", "/my files/j", True),
        ("-Xdebug", None, True),
    ],
)
def test_the_jaas_file_of_the_jvm_is_used(options: str, file: str | None, has_more: bool) -> None:
    keys, without_effect = keys_from_environment({"KAFKA_OPTS": options})
    assert keys.get("kpybroker.jaas.config.file") == file
    assert without_effect == (["KAFKA_OPTS"] if has_more else [])


@pytest.mark.parametrize("variable", ["CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CFG_CLUSTER_ID"])
def test_the_id_of_a_new_cluster_is_that_of_the_image(variable: str) -> None:
    keys, _ = keys_from_environment({variable: " abc ", "KAFKA_NODE_ID": "1"})
    assert keys == {"kpybroker.new.cluster.id": "abc", "node.id": "1"}
    assert keys_from_environment({"CLUSTER_ID": "abc"}) == ({}, [])


@pytest.mark.parametrize(
    ("advertised", "listeners"),
    [
        ("PLAINTEXT://kafka:9092", "PLAINTEXT://:9092"),
        ("A://kafka:29092, B://localhost:9092", "A://:29092,B://:9092"),
        ("A://[::1]:29092", "A://:29092"),
        ("nonsense", "nonsense"),
    ],
)
def test_listeners_are_made_of_the_advertised_ones(advertised: str, listeners: str) -> None:
    assert listeners_behind(advertised) == listeners
