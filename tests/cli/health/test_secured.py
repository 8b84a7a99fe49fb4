"""`kpybroker ping` and `doctor` with `--command-config`, and the banner, on listeners with TLS and logins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kpybroker.broker.requests.served.apis import SERVED, listed_for
from kpybroker.control.development import logins
from kpybroker.control.development.certificates import certificates
from kpybroker.control.development.logins import Login
from kpybroker.control.development.security import SecurityOptions, broker_keys
from tests.cli.test_main import finish, ready, two_lines
from tests.support.network.ports import free_port

WANTED = SecurityOptions(tls=True, sasl="scram", acl=True)


class Running(NamedTuple):
    address: str
    login: Login


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("secured")
    data = str(directory / "data")
    tls = certificates(directory / "data-tls", "127.0.0.1")
    with ready("dev", "--port", "0", "--data-dir", data, "--tls", "--acl") as (_, host, port):
        yield Running(f"{host}:{port}", Login(WANTED, "alice", tls))


def config_of(directory: Path, properties: Mapping[str, Any], **changed: str | None) -> str:
    """A client's file; `changed` has underscores for dots, and None removes a key."""
    named = {key.replace("_", "."): value for key, value in changed.items()}
    file = directory / "client.properties"
    kept = {key: value for key, value in {**properties, **named}.items() if value is not None}
    file.write_text("".join(f"{key}={value}\n" for key, value in kept.items()))
    return str(file)


def test_ping_logs_in(running: Running, tmp_path: Path) -> None:
    file = config_of(tmp_path, logins.java(running.login))
    said = f"{running.address} responds and serves {len(listed_for(SERVED, ''))} APIs; SCRAM-SHA-256 is accepted\n"
    assert finish("ping", running.address, "--command-config", file) == (0, said, "")


def test_ping_takes_the_address_of_the_file(running: Running, tmp_path: Path) -> None:
    file = config_of(tmp_path, logins.java(running.login), bootstrap_servers=f"{running.address},127.0.0.1:1")
    code, out, _ = finish("ping", "--command-config", file)
    assert (code, out.split()[0]) == (0, running.address)


def test_ping_without_the_file_says_that_it_is_needed(running: Running) -> None:
    code, _, err = finish("ping", running.address)
    cause, fix = two_lines(err)
    assert code == 1
    assert "closed the connection without a response" in cause
    assert "--command-config FILE" in fix


@pytest.mark.parametrize(
    ("changed", "code", "cause"),
    [
        ({"sasl_jaas_config": 'x.PlainLoginModule required username="alice" password="hidden-word";'}, 1, "invalid"),
        ({"sasl_mechanism": "PLAIN"}, 1, "does not offer PLAIN but SCRAM-SHA-256"),
        ({"ssl_truststore_location": None, "ssl_truststore_type": None}, 1, "TLS with"),
        ({"ssl_truststore_location": "/no/such/file"}, 2, "ssl.truststore.location"),
        ({"security_protocol": "SASL_PLAINTEXT"}, 1, "closed the connection"),
    ],
    ids=["password", "mechanism", "trust", "file", "protocol"],
)
def test_ping_says_what_is_wrong(
    running: Running, tmp_path: Path, changed: dict[str, str | None], code: int, cause: str
) -> None:
    file = config_of(tmp_path, logins.java(running.login), **changed)
    found, out, err = finish("ping", running.address, "--command-config", file)
    assert (found, out) == (code, "")
    assert cause in two_lines(err)[0]
    assert "hidden-word" not in err


def test_ping_asks_without_a_login_where_it_has_not_the_mechanism(running: Running, tmp_path: Path) -> None:
    file = config_of(tmp_path, logins.java(running.login), sasl_mechanism="GSSAPI", sasl_jaas_config=None)
    said = f"{running.address} responds and serves {len(listed_for(SERVED, ''))} APIs\n"
    assert finish("ping", running.address, "--command-config", file) == (0, said, "")


def findings(running: Running, tmp_path: Path, /, user: str = "alice", **changed: Any) -> list[dict[str, Any]]:
    file = config_of(tmp_path, logins.java(running.login._replace(user=user)), **changed)
    _, out, _ = finish("doctor", running.address, "--command-config", file, "--format", "json")
    found: list[dict[str, Any]] = json.loads(out)
    return found


def test_doctor_finds_nothing_wrong_with_the_right_settings(running: Running, tmp_path: Path) -> None:
    found = findings(running, tmp_path, "admin")
    assert {one["status"] for one in found} <= {"ok", "note"}, found
    texts = " ".join(one["text"] for one in found)
    for words in ("over TLSv1.3", "trusted, valid until", "SCRAM-SHA-256 is accepted", "connects and sees"):
        assert words in texts


@pytest.mark.parametrize(
    ("changed", "check", "text"),
    [
        ({"sasl_jaas_config": 'x.ScramLoginModule required username="alice" password="x";'}, "login", "invalid"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "protocol", "is encrypted, and the client speaks SASL_PLAINTEXT"),
        ({"security_protocol": "SSL"}, "login", "the listener wants a login (SCRAM-SHA-256), and the client has none"),
        ({"ssl_truststore_location": None, "ssl_truststore_type": None}, "certificate", "issuer certificate"),
    ],
    ids=["password", "plain", "no login", "trust"],
)
def test_doctor_says_what_is_wrong(
    running: Running, tmp_path: Path, changed: dict[str, str | None], check: str, text: str
) -> None:
    failed = [one for one in findings(running, tmp_path, **dict[str, Any](changed)) if one["status"] == "failed"]
    assert failed
    assert failed[0]["check"] == check
    assert text in failed[0]["text"]
    assert failed[0]["fix"]


def test_the_banner_of_a_configured_broker_has_the_clients_settings(tmp_path: Path) -> None:
    keys = broker_keys(WANTED, certificates(tmp_path / "tls", "127.0.0.1"))
    port = free_port()
    keys |= {"listeners": f"SASL_SSL://127.0.0.1:{port}", "log.dirs": str(tmp_path / "data")}
    keys |= {"offsets.topic.replication.factor": "1"}
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    with ready("server", str(file), "--log-level", "ERROR") as (process, _, _):
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert "  logins   SCRAM-SHA-256\n" in err
    command = " ".join(err.replace(" \\\n", "").split())
    assert f"kcat -L -b 127.0.0.1:{port} -X security.protocol=SASL_SSL -X ssl.ca.location=CA.pem" in command
    assert "PySpark" not in err
    assert "secret" not in err


def test_a_doctor_with_the_right_settings_leaves_no_warning_in_the_brokers_log(tmp_path: Path) -> None:
    wanted = SecurityOptions(tls=True, sasl="scram")
    files = certificates(tmp_path / "tls", "127.0.0.1")
    at = {protocol: f"127.0.0.1:{free_port()}" for protocol in ("SASL_SSL", "SSL", "PLAINTEXT")}
    keys = broker_keys(wanted, files) | {"log.dirs": str(tmp_path / "data"), "broker.id": "0"}
    keys["listeners"] = ",".join(f"{protocol}://{address}" for protocol, address in at.items())
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    with ready("server", str(file)) as (process, _, _):
        secured = config_of(tmp_path, logins.java(Login(wanted, "alice", files)))
        trusting = ("-X", f"ssl.ca.location={files.authority}")
        for protocol, options in (
            ("SASL_SSL", ("--command-config", secured)),
            ("SSL", ("-X", "security.protocol=SSL", *trusting)),
            ("PLAINTEXT", ()),
        ):
            code, out, _ = finish("doctor", at[protocol], *options)
            assert (code, "nothing is wrong" in out) == (0, True), out
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert "WARN" not in err.partition("[KafkaServer id=0] started")[2]
