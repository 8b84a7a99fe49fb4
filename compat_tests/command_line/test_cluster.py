"""`kpybroker cluster`, `doctor`, `acl` and `user` against a real broker.

The last two need an authorizer and SASL; without these the commands say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.conftest import Launcher, MakeTopic, StartBroker
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.services import KAFKA_VERSION, Broker
from compat_tests.support.tools import Tools
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.ports import free_port


def release_of(kind: str) -> str:
    """The release of Kafka that a broker looks like: Kafka 3.9.1, or ours."""
    return "3.9" if kind == "kafka" else os.environ.get(KAFKA_VERSION, "4.3")


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


def test_the_cluster_is_described(cli: CommandLine, broker: Broker) -> None:
    found = cli.json("cluster", "info")
    metadata = quick.admin_client(broker.bootstrap).list_topics(timeout=quick.DEADLINE_S)
    assert (found["cluster_id"], found["controller"]) == (metadata.cluster_id, metadata.controller_id)
    assert [(one["broker"], one["port"], one["controller"], one["looks_like"]) for one in found["brokers"]] == [
        (0, broker.port, True, release_of(broker.kind))
    ]


def test_it_is_healthy_and_its_files_are_listed(cli: CommandLine, broker: Broker, topic: MakeTopic) -> None:
    made = topic(partitions=2)
    quick.fill(broker.bootstrap, made, ["x" * 1000], 1)
    assert "are healthy" in cli.run("cluster", "health").err
    sizes = {row["partition"]: row["size"] for row in cli.json("cluster", "log-dirs", "-r") if row["topic"] == made}
    assert sizes[0] == 0
    assert sizes[1] > 1000
    assert cli.json("cluster", "log-dirs")[0]["directory"] == str(broker.data_dir)


def test_its_apis_are_listed(cli: CommandLine, request: pytest.FixtureRequest) -> None:
    newest = {row["api"]: row["newest"] for row in cli.json("cluster", "api-versions")}
    is_as_3_9 = request.config.getoption("--kafka-version") == "3.9"
    assert (newest["Produce"], newest["Fetch"]) == ((11, 17) if is_as_3_9 else (13, 18))


def test_a_doctor_finds_nothing(own_broker: StartBroker) -> None:
    """On a broker of its own: on the shared one other tests leave records from the future, which it warns of."""
    cli = CommandLine(own_broker().bootstrap)
    result = cli.run("doctor", "--write")
    assert result.lines[-1] == "nothing is wrong", result.out
    assert "agrees with this machine" in result.out
    assert not [row for row in cli.json("topic", "list") if "doctor" in row["name"]]


class Secured(NamedTuple):
    """A broker with a listener of each protocol; anonymous clients and `admin` may do everything."""

    plain: str
    ssl: str
    sasl: str
    sasl_ssl: str
    authority: Authority


MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule"}
MODULES["SCRAM-SHA-512"] = MODULES["SCRAM-SHA-256"]


def jaas(mechanism: str, user: str, password: str, more: str = "") -> str:
    module = f"org.apache.kafka.common.security.{MODULES[mechanism]}"
    return f'{module} required username="{user}" password="{password}"{more};'


@pytest.fixture(scope="module")
def secured(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    authority = Authority(tmp_path_factory.mktemp("ca"))
    _, store = authority.issue("broker")
    broker = launcher.unstarted()
    ports = {"PLAINTEXT": broker.port, "SSL": free_port(), "SASL_PLAINTEXT": free_port(), "SASL_SSL": free_port()}
    logins = {
        f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config": jaas(
            mechanism, "admin", "admin-secret", ' user_alice="alice-secret"' if mechanism == "PLAIN" else ""
        )
        for name in ("sasl_plaintext", "sasl_ssl")
        for mechanism in MODULES
    }
    broker.configure(
        {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
            "sasl.enabled.mechanisms": ",".join(MODULES),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            **logins,
        }
    )
    broker.start()
    plain, encrypted, sasl, sasl_ssl = (f"127.0.0.1:{port}" for port in ports.values())
    yield Secured(plain, encrypted, sasl, sasl_ssl, authority)
    broker.service.kill()


def config_file(directory: Path, protocol: str, mechanism: str, user: str, password: str, authority: Authority) -> str:
    """A .properties file as Kafka's tools take it."""
    file = directory / f"{user}-{mechanism}-{protocol}.properties"
    file.write_text(
        f"security.protocol={protocol}\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas(mechanism, user, password)}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={authority.certificate}\n"
    )
    return str(file)


def test_users_are_made_listed_and_deleted(secured: Secured, tmp_path: Path) -> None:
    cli = CommandLine(secured.plain)
    set_two = ("user", "set", "bob", "--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    assert cli.json(*set_two, "--password-file", password_file(tmp_path))[0]["status"] == "set"
    assert {(row["mechanism"], row["iterations"]) for row in cli.json("user", "list", "bob")} == {
        ("SCRAM-SHA-256", 8192),
        ("SCRAM-SHA-512", 8192),
    }
    tool = Tools("3.9.1", secured.plain).run("configs", "--describe", "--entity-type", "users", "--entity-name", "bob")
    assert "SCRAM-SHA-256=iterations=8192" in tool.out
    for mechanism, protocol, address in (
        ("SCRAM-SHA-256", "SASL_PLAINTEXT", secured.sasl),
        ("SCRAM-SHA-512", "SASL_SSL", secured.sasl_ssl),
    ):
        file = config_file(tmp_path, protocol, mechanism, "bob", "bob-secret", secured.authority)
        as_bob = CommandLine(address)
        # one through librdkafka, one through our own codec; Kafka's tool takes the same file
        assert as_bob.run("topic", "list", "--command-config", file).err == "there is no such topic\n"
        as_bob.run("cluster", "info", "--command-config", file)
        as_bob.run("doctor", "--command-config", file)
        wrong = config_file(tmp_path, protocol, mechanism, "bob", "not-bobs-secret", secured.authority)
        for words in (("topic", "list"), ("cluster", "info"), ("doctor",)):
            refused = as_bob.run(*words, "--command-config", wrong, code=1)
            assert "uthentication" in refused.err + refused.out
            assert "not-bobs-secret" not in refused.err + refused.out
    assert "would be deleted" in cli.run("user", "delete", "bob").out
    cli.run("user", "delete", "bob", "--mechanism", "SCRAM-SHA-256", "--execute")
    assert [row["mechanism"] for row in cli.json("user", "list")] == ["SCRAM-SHA-512"]
    cli.run("user", "delete", "bob", "--execute")
    assert cli.json("user", "list") == []
    assert "RESOURCE_NOT_FOUND" in cli.run("user", "list", "bob", code=1).err


def password_file(directory: Path) -> str:
    file = directory / "bob.txt"
    file.write_text("bob-secret\n")
    return str(file)


def test_acls_decide_what_a_user_may_do(secured: Secured, tmp_path: Path) -> None:
    cli, as_alice = CommandLine(secured.plain), CommandLine(secured.sasl)
    config = (
        "--command-config",
        config_file(tmp_path, "SASL_PLAINTEXT", "PLAIN", "alice", "alice-secret", secured.authority),
    )
    cli.run("topic", "create", "orders")
    assert as_alice.run("topic", "describe", "orders", *config, code=1).err.count("TOPIC_AUTHORIZATION_FAILED") == 1
    refused = as_alice.run("topic", "produce", "orders", *config, "--timeout", "5", stdin="x\n", code=1)
    assert "delivered 0 records" in refused.err
    assert "uthoriz" in refused.err, refused.err  # of the topic, or of the producer id: whichever the client asks first
    cli.run("acl", "create", "--allow-principal", "alice", "--topic", "ord", "--prefixed", "--producer")
    cli.run("acl", "create", "--allow-principal", "alice", "--topic", "orders", "--group", "readers", "--consumer")
    as_alice.run("topic", "produce", "orders", *config, stdin="x\n")
    assert as_alice.run("topic", "consume", "orders", "-g", "readers", "-e", *config).lines == ["x"]
    tool = Tools("3.9.1", secured.plain)
    rows = cli.json("acl", "list", "--allow-principal", "alice")
    assert {(row["resource"], row["name"], row["pattern"], row["operation"]) for row in rows} == {
        ("topic", "ord", "PREFIXED", "WRITE"),
        ("topic", "ord", "PREFIXED", "DESCRIBE"),
        ("topic", "ord", "PREFIXED", "CREATE"),
        ("topic", "orders", "LITERAL", "READ"),
        ("topic", "orders", "LITERAL", "DESCRIBE"),
        ("group", "readers", "LITERAL", "READ"),
    }
    assert tool.run("topics", "--list").lines
    assert "would be deleted" in cli.run("acl", "delete", "--allow-principal", "alice").out
    assert len(cli.json("acl", "list", "--allow-principal", "alice")) == 6
    cli.run("acl", "delete", "--allow-principal", "alice", "--execute")
    assert cli.json("acl", "list") == []
    cli.run("topic", "delete", "orders", "-y")


def test_a_doctor_says_what_each_listener_speaks(secured: Secured, tmp_path: Path, launcher: Launcher) -> None:
    cli = CommandLine(secured.plain)
    for address, words, expected in (
        (secured.ssl, (), "is encrypted, and the client speaks PLAINTEXT"),
        (secured.plain, ("-X", "security.protocol=SSL"), "is not encrypted, and the client speaks SSL"),
        (secured.ssl, ("-X", "security.protocol=SSL"), "unable to get local issuer certificate"),
        (secured.sasl, (), "the listener wants a login"),
        (secured.sasl_ssl, (), "set security.protocol=SASL_SSL"),
    ):
        assert expected in cli.run("doctor", address, *words, code=1).out
    ok = ("-X", "security.protocol=SSL", "-X", f"ssl.ca.location={secured.authority.certificate}")
    assert "failed" not in cli.run("doctor", secured.ssl, *ok).out
    assert cli.json("cluster", "info", "-b", secured.ssl, *ok)["brokers"][0]["looks_like"] == release_of(launcher.kind)


def test_a_broker_without_acls_says_so(cli: CommandLine) -> None:
    refused = cli.run("acl", "list", code=1)
    assert "SECURITY_DISABLED" in refused.err
    assert "authorizer.class.name" in refused.err
