"""Stock clients over TLS and mutual TLS: every record arrives as it was written, whichever client reads it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.tls.tls_sides import READERS, WRITERS, Sides, properties_file, tls_sides
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

VALUES = [f"value {number} äöü {'x' * (number * 7 % 300)}" for number in range(200)]


@pytest.fixture(scope="module")
def sides(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    def start(port: int, keys: dict[str, str]) -> Broker:
        broker = launcher.unstarted()
        broker.port = broker.client_port = port
        broker.configure(keys)
        broker.start()
        return broker

    made = tls_sides(start, tmp_path_factory.mktemp("certificates"))
    yield made
    made.broker.service.kill()


@pytest.mark.parametrize("is_mutual", [False, True], ids=["ssl", "mtls"])
@pytest.mark.parametrize("client", WRITERS)
def test_records_that_one_client_writes_are_read_by_all_others(
    sides: Sides, client: str, is_mutual: bool, name: str
) -> None:
    create_topic(sides.broker.bootstrap, name)
    WRITERS[client](sides, is_mutual, name, VALUES)
    readers = {"confluent", client}
    for reader in sorted(readers):
        assert READERS[reader](sides, is_mutual, name, len(VALUES)) == VALUES, reader


def test_large_records_arrive(sides: Sides, name: str) -> None:
    create_topic(sides.broker.bootstrap, name, max_message_bytes=5_000_000)
    values = [chr(97 + number) * (900_000 + number) for number in range(5)]
    WRITERS["kcat"](sides, False, name, [value[:100_000] for value in values])
    WRITERS["confluent"](sides, True, name, values)
    expected = [value[:100_000] for value in values] + values
    assert READERS["confluent"](sides, False, name, len(expected)) == expected
    assert READERS["kafka-python"](sides, True, name, len(expected)) == expected


def test_a_client_without_a_certificate_is_refused_where_one_is_required(sides: Sides) -> None:
    from confluent_kafka.admin import AdminClient

    from compat_tests.security.tls.tls_sides import librdkafka_settings

    settings = librdkafka_settings(sides, True)
    for key in ("ssl.certificate.location", "ssl.key.location"):
        del settings[key]
    with pytest.raises(Exception, match=r"_TRANSPORT"):
        AdminClient({**settings, "log_level": 0}).list_topics(timeout=5)
    if sides.broker.kind == "kpybroker":
        eventually(lambda: "the client shows no certificate" in sides.broker.service.output(), "a line in the log")


def test_kafkas_admin_tools_work_over_tls(sides: Sides, name: str) -> None:
    for version, is_mutual in (("3.9.1", False), ("4.x", True)):
        tools = Tools(version, sides.address(is_mutual))
        config = ["--command-config", properties_file(sides, is_mutual)]
        topic = f"{name}-{version}"
        tools.run("topics", "--create", "--topic", topic, *config)
        assert topic in tools.run("topics", "--list", *config).lines


def test_a_plain_client_on_a_tls_port_is_explained(sides: Sides) -> None:
    if sides.broker.kind != "kpybroker":
        pytest.skip("Kafka writes a stack trace's first line")
    from confluent_kafka.admin import AdminClient

    with pytest.raises(Exception, match=r"_TRANSPORT"):
        AdminClient({"bootstrap.servers": sides.ssl, "log_level": 0}).list_topics(timeout=3)
    eventually(
        lambda: "plain-text Kafka request on a SSL listener" in sides.broker.service.output(), "a line in the log"
    )


def test_certificates_change_while_the_broker_runs(sides: Sides) -> None:
    """`kafka-configs --alter` on the listener; a bad store is refused and the old one serves."""
    _, renewed = sides.authority.issue("renewed", subject="/CN=server")
    _, other = sides.authority.issue("other")
    tools = Tools("3.9.1", sides.broker.bootstrap)
    before = presented(sides)

    def alter(location: str) -> str:
        config = f"listener.name.ssl.ssl.keystore.location={location}"
        result = tools.run(
            "configs", "--entity-type", "brokers", "--entity-name", "0", "--alter", "--add-config", config, check=False
        )
        return result.out + result.err

    for bad in ("/no/such.p12", sides.file("ca.p12"), str(other)):
        assert "InvalidRequestException" in alter(bad), bad
        assert presented(sides) == before
    assert "Completed updating config" in alter(str(renewed))
    eventually(lambda: presented(sides) != before, "the renewed certificate")
    shutil.copy(sides.file("server.p12"), renewed)
    assert "Completed updating config" in alter(str(renewed)), "the same name for another file"
    eventually(lambda: presented(sides) == before, "the certificate of the replaced file")


def presented(sides: Sides) -> str:
    """The certificate that the broker shows, as PEM."""
    import ssl

    host, _, port = sides.ssl.partition(":")
    return ssl.get_server_certificate((host, int(port)), ca_certs=str(sides.authority.certificate))
