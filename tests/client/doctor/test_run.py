"""`doctor` against brokers that work, and against what users meet instead."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kpybroker.client.doctor import trial
from kpybroker.client.doctor.findings import Findings
from kpybroker.client.doctor.trial import Written
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_configs import DescribeConfigsResponse
from kpybroker.wire.messages.list_offsets import ListOffsetsResponse
from kpybroker.wire.messages.metadata import MetadataResponse
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeResponse
from tests.client.conftest import Run
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port
from tests.support.network.wire_server import Respond, bytes_server, kafka_server, versions
from tests.support.programs.command_line import Result, invoke
from tests.support.programs.samples import dev_broker


def at(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def findings(result: Result, check: str) -> list[dict[str, Any]]:
    return [one for one in result.json if one["check"] == check]


def failure(result: Result, check: str) -> dict[str, Any]:
    """The one failure, which is of this check and has a fix."""
    assert result.code == 1
    found: dict[str, Any]
    (found,) = (one for one in result.json if one["status"] == "failed")
    assert found["check"] == check
    assert found["fix"]
    return found


def test_a_broker_that_works(run: Run, bootstrap: str) -> None:
    result = run("doctor", bootstrap)
    assert (result.code, result.lines[-1]) == (0, "nothing is wrong")
    assert "looks like Kafka 4.3" in result.text
    assert "librdkafka" in result.text
    assert "failed" not in result.text


def test_a_round_trip_leaves_nothing(run: Run) -> None:
    result = run("doctor", "--write", "--format", "json")
    assert result.code == 0
    assert [one["status"] for one in result.json if one["check"] in ("write", "clock", "read")][-3:] == ["ok"] * 3
    assert "kpybroker-doctor" not in run("topic", "list").text + run("group", "list").text


def test_a_name_that_does_not_resolve(run: Run) -> None:
    assert "has no address" in failure(run("doctor", "nosuch.invalid", "--format", "json"), "name")["text"]


def test_a_port_that_is_closed(run: Run) -> None:
    result = run("doctor", f"127.0.0.1:{free_port()}", "--format", "json", "--write")
    assert "Connection refused" in failure(result, "connection")["text"]
    assert findings(result, "round trip")[0]["status"] == "skipped"


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "is an HTTP server"),
        (b"SSH-2.0-x\r\n", "is no Kafka: it says b'SSH-2.0-x"),
        (b"", "closes the connection"),
        (None, "says nothing"),
    ],
)
def test_a_port_that_speaks_something_else(run: Run, said: bytes | None, named: str) -> None:
    with bytes_server(lambda words: said) as address:
        result = run("doctor", at(address), "--format", "json", "--timeout", "0.3")
    assert named in failure(result, "protocol")["text"]


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[str, Authority]]:
    """(address, its authority) of a server with TLS."""
    authority = Authority(tmp_path / "ca")
    pem, _ = authority.issue("broker")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with kafka_server({ApiKey.METADATA: lambda request, version: one_broker()}, context) as address:
        own.append(address)
        yield at(address), authority
        own.clear()


own: list[tuple[str, int]] = []


def one_broker() -> MetadataResponse:
    return brokers(*own)


def test_a_plain_client_at_an_encrypted_port(run: Run, encrypted: tuple[str, Authority]) -> None:
    found = failure(run("doctor", encrypted[0], "--format", "json"), "protocol")
    assert "is encrypted, and the client speaks PLAINTEXT" in found["text"]
    assert "security.protocol=SSL" in found["fix"]


def test_an_encrypted_client_at_a_plain_port(run: Run, bootstrap: str) -> None:
    found = failure(run("doctor", bootstrap, "-X", "security.protocol=SSL", "--format", "json"), "protocol")
    assert "is not encrypted, and the client speaks SSL" in found["text"]


def test_a_certificate_that_is_not_trusted_and_one_that_is(run: Run, encrypted: tuple[str, Authority]) -> None:
    address, authority = encrypted
    tls = ("-X", "security.protocol=SSL", "--format", "json")
    assert "issuer certificate" in failure(run("doctor", address, *tls), "certificate")["text"]
    trusted = run("doctor", address, *tls, "-X", f"ssl.ca.location={authority.certificate}")
    assert trusted.code == 0
    # the test's certificates live for two days
    assert "expires in 1 days" in findings(trusted, "certificate")[0]["text"]
    other = f"localhost:{address.rpartition(':')[2]}"
    named = failure(run("doctor", other, *tls, "-X", f"ssl.ca.location={authority.certificate}"), "certificate")
    assert "subjectAltName" in named["fix"]


@pytest.mark.parametrize(
    ("host", "port", "named"),
    [
        ("nosuch.invalid", 9092, "a name that has no address here"),
        ("127.0.0.1", None, "cannot connect"),
    ],
)
def test_an_advertised_address_that_clients_cannot_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, port: int | None, named: str
) -> None:
    advertised = f"advertised.listeners=PLAINTEXT://{host}:{port or free_port()}"
    with dev_broker(tmp_path / "data", "--override", advertised) as broker:
        result = invoke(monkeypatch, "doctor", broker.bootstrap, "--format", "json")
    found = failure(result, "advertised")
    assert named in found["text"]
    assert "set advertised.listeners of broker 0" in found["fix"]


def test_an_advertised_address_of_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bootstrap: str
) -> None:
    advertised = f"advertised.listeners=PLAINTEXT://{bootstrap}"
    with dev_broker(tmp_path / "data", "--override", advertised) as broker:
        result = invoke(monkeypatch, "doctor", broker.bootstrap, "--format", "json")
    assert "where a broker of another cluster" in failure(result, "advertised")["text"]


def brokers(*addresses: tuple[str, int], controller_id: int = 0, topics: Any = ()) -> MetadataResponse:
    found = [
        MetadataResponse.MetadataResponseBroker(node_id=n, host=host, port=port)
        for n, (host, port) in enumerate(addresses)
    ]
    return MetadataResponse(cluster_id="c", controller_id=controller_id, brokers=found, topics=list(topics))


def partition(number: int, leader: int, isr: list[int]) -> MetadataResponse.MetadataResponsePartition:
    return MetadataResponse.MetadataResponsePartition(
        partition_index=number, leader_id=leader, replica_nodes=[0, 1], isr_nodes=isr
    )


Metadata: TypeAlias = Callable[[tuple[str, int]], MetadataResponse]
"""From the server's own address, what it says of its cluster."""


def served_by(metadata: Metadata, run: Run, *words: str, responses: Mapping[ApiKey, Respond] | None = None) -> Result:
    """`doctor` at a server with these responses."""
    served: dict[ApiKey, Respond] = {ApiKey.METADATA: lambda request, version: metadata(address), **(responses or {})}
    with kafka_server(served) as address:
        return run("doctor", at(address), "--format", "json", "--timeout", "2", *words)


def test_a_cluster_without_a_controller(run: Run) -> None:
    result = served_by(lambda own: brokers(own, controller_id=-1), run)
    assert "has no controller" in failure(result, "brokers")["text"]
    assert "names no broker" in failure(served_by(lambda own: brokers(), run), "brokers")["text"]


def test_partitions_without_leaders_and_replicas(run: Run) -> None:
    topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition(0, -1, []), partition(1, 0, [0])])
    result = served_by(lambda own: brokers(own, topics=[topic]), run)
    assert failure(result, "topics")["text"] == "1 partition without a leader: t-0"
    assert {one["status"] for one in findings(result, "topics")} == {"failed", "warning"}


def test_an_unspecified_advertised_address(run: Run) -> None:
    result = served_by(lambda own: brokers(own, ("0.0.0.0", 9092)), run)
    assert "which no client can connect to" in failure(result, "advertised")["text"]


@pytest.mark.parametrize(("log_start", "status"), [(0, "warning"), (1, "warning"), (2, "ok")])
def test_records_from_the_future(run: Run, log_start: int, status: str) -> None:
    """One that is deleted already warns of nothing."""
    topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition(0, 0, [0]), partition(1, 0, [0])])

    def list_offsets(request: Any, version: int) -> ListOffsetsResponse:
        one = ListOffsetsResponse.ListOffsetsPartitionResponse
        if request.topics[0].partitions[0].timestamp == -2:
            found = [one(partition_index=0, timestamp=-1, offset=log_start)]
        else:
            assert [each.timestamp for each in request.topics[0].partitions] == [-3, -3]
            found = [
                one(partition_index=0, timestamp=4_000_000_000_000, offset=1),
                one(partition_index=1, timestamp=5, offset=0),
            ]
        return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=found)])

    responses = {ApiKey.LIST_OFFSETS: list_offsets}
    result = served_by(lambda own: brokers(own, topics=[topic]), run, responses=responses)
    (clock,) = findings(result, "clock")
    assert clock["status"] == status
    assert ("ahead of this machine's clock" in clock["text"]) is (status == "warning")


def test_factors_that_the_cluster_can_never_meet(run: Run) -> None:
    def describe_configs(request: Any, version: int) -> DescribeConfigsResponse:
        assert request.resources[0].resource_name == "0"
        entries = [
            DescribeConfigsResponse.DescribeConfigsResourceResult(name=key, value=value)
            for key, value in zip(request.resources[0].configuration_keys, ("3", "1"), strict=True)
        ]
        return DescribeConfigsResponse(results=[DescribeConfigsResponse.DescribeConfigsResult(configs=entries)])

    result = served_by(brokers, run, responses={ApiKey.DESCRIBE_CONFIGS: describe_configs})
    found = failure(result, "factors")
    assert found["text"] == "groups cannot work: offsets.topic.replication.factor is 3, and there is 1 broker"
    assert "or run 3 brokers" in found["fix"]


def test_a_controllers_listener(run: Run) -> None:
    responses: Mapping[ApiKey, Respond] = {
        ApiKey.API_VERSIONS: lambda request, version: versions({18: (0, 3), 52: (0, 1)})
    }
    with kafka_server(responses) as address:
        result = run("doctor", at(address), "--format", "json")
    assert "KRaft controller" in failure(result, "versions")["text"]


def sasl_responses(mechanisms: list[str], code: int) -> dict[ApiKey, Respond]:
    return {
        ApiKey.SASL_HANDSHAKE: lambda request, version: SaslHandshakeResponse(
            error_code=code if request.mechanism not in mechanisms else 0, mechanisms=mechanisms
        ),
        ApiKey.SASL_AUTHENTICATE: lambda request, version: SaslAuthenticateResponse(
            error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message="bad credentials"
        ),
    }


LOGIN = ("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.username=u", "-X", "sasl.password=a-long-secret")


@pytest.mark.parametrize(
    ("mechanisms", "words", "named"),
    [
        (["PLAIN", "SCRAM-SHA-256"], (), "wants a login (PLAIN, SCRAM-SHA-256), and the client has none"),
        (["PLAIN"], (*LOGIN, "-X", "sasl.mechanism=SCRAM-SHA-256"), "offers PLAIN, and the client has SCRAM-SHA-256"),
        (["PLAIN"], (*LOGIN, "-X", "sasl.mechanism=PLAIN"), "bad credentials"),
    ],
)
def test_a_login_that_does_not_fit(run: Run, mechanisms: list[str], words: tuple[str, ...], named: str) -> None:
    responses = sasl_responses(mechanisms, int(ErrorCode.UNSUPPORTED_SASL_MECHANISM))
    responses[ApiKey.METADATA] = lambda request, version: None  # a listener with logins ends such a connection
    result = served_by(brokers, run, *words, responses=responses)
    assert named in failure(result, "login")["text"]
    assert "a-long-secret" not in result.text + result.err


def test_a_login_where_there_is_none(run: Run) -> None:
    words = (*LOGIN, "-X", "sasl.mechanism=PLAIN")
    result = served_by(brokers, run, *words, responses=sasl_responses([], int(ErrorCode.ILLEGAL_SASL_STATE)))
    assert "has no login, and the client has one" in failure(result, "login")["text"]


@pytest.mark.parametrize(
    ("timestamp_ms", "status", "text"),
    [
        (1_000, "ok", "agrees"),
        (1_400, "ok", "agrees"),
        (4_100, "warning", "2.6 s ahead of"),
        (-9_000, "warning", "10.0 s behind"),
        (101_500, "failed", "100.0 s ahead of"),
    ],
)
def test_clocks_are_compared_with_the_time_of_a_write(timestamp_ms: int, status: str, text: str) -> None:
    found = Findings("json")
    trial._check_clock(0, Written(0, timestamp_ms, 1_000, 1_500), found)
    assert found.found[0].status == status
    assert text in found.found[0].text
