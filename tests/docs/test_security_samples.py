"""The samples of the security guides do what their pages say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kpybroker.broker.requests.served.apis import SERVED, listed_for
from kpybroker.config.sources.properties import load_properties
from tests.support.network.ports import free_port
from tests.support.programs.samples import (
    READY,
    ROOT,
    SAMPLES,
    dev_broker,
    environment,
    module_of,
    run_sample,
    text_of,
    unknown_or_without_effect,
)

confluent_kafka = pytest.importorskip("confluent_kafka")

SETTINGS = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "alice", "sasl.password": "alice-secret"}
AUTHORITY = "certificates/ca.pem"


def cluster_id(bootstrap: str, mechanism: str, **changed: str) -> str:
    from confluent_kafka.admin import AdminClient

    settings = {"bootstrap.servers": bootstrap, "sasl.mechanisms": mechanism, **SETTINGS, **changed}
    return str(AdminClient(settings).list_topics(timeout=120).cluster_id)


def test_a_user_is_created_logs_in_and_is_removed(tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data", "--tls", "--sasl", "scram") as running:
        place = {"127.0.0.1:9092": running.bootstrap, AUTHORITY: str(tmp_path / "data-tls" / "ca.pem")}
        out = run_sample("security/scram_users.py", tmp_path, place)
    first, second = out.splitlines()
    assert first.startswith("carol is logged in at cluster ")
    assert second == "carol is gone"


@pytest.mark.parametrize(
    "name",
    [
        "sasl.properties",
        "acls.properties",
        "oauthbearer/between.properties",
        *(f"rolling/step-{step}.properties" for step in (1, 3, 4)),
    ],
)
def test_every_key_of_the_sample_has_an_effect(name: str) -> None:
    assert unknown_or_without_effect(load_properties(str(SAMPLES / "security" / name))) == []


@contextmanager
def broker_of(name: str, directory: Path) -> Iterator[str]:
    """A broker of a sample's configuration; its address."""
    address = f"127.0.0.1:{free_port()}"
    file = directory / "server.properties"
    file.write_text(f"{text_of(name, {'127.0.0.1:9092': address})}log.dirs={directory / 'data'}\n")
    command = [sys.executable, "-m", "kpybroker", "server", str(file)]
    env = environment(directory / "home")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=directory) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(READY)
            yield address
        finally:
            os.kill(process.pid, signal.SIGTERM)


def test_a_broker_of_the_sample_serves_both_mechanisms(tmp_path: Path) -> None:
    run_sample("security/certificates.sh", tmp_path, {})
    encrypted = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(tmp_path / AUTHORITY)}
    with broker_of("security/sasl.properties", tmp_path) as address:
        found = {cluster_id(address, mechanism, **encrypted) for mechanism in ("PLAIN", "SCRAM-SHA-256")}
        assert len(found) == 1
        file = tmp_path / "client.properties"
        file.write_text(text_of("security/sasl-client.properties", {AUTHORITY: str(tmp_path / AUTHORITY)}))
        ping = [sys.executable, "-m", "kpybroker", "ping", address, "--command-config", str(file)]
        env = environment(tmp_path / "home")
        out = subprocess.run(ping, capture_output=True, text=True, check=True, timeout=60, env=env).stdout
        assert out == f"{address} responds and serves {len(listed_for(SERVED, ''))} APIs; SCRAM-SHA-256 is accepted\n"


def test_the_page_shows_what_ping_says() -> None:
    page = (ROOT / "docs" / "guides" / "security" / "sasl.md").read_text(encoding="utf-8")
    assert f"responds and serves {len(listed_for(SERVED, ''))} APIs; SCRAM-SHA-256 is accepted" in page


def test_acls_decide_what_alice_may_write(tmp_path: Path) -> None:
    with broker_of("security/acls.properties", tmp_path) as address:
        out = run_sample("security/acls.py", tmp_path, {"127.0.0.1:9092": address})
    assert out.splitlines() == [
        "app-1: TOPIC_AUTHORIZATION_FAILED",
        "app-1: written",
        "other: TOPIC_AUTHORIZATION_FAILED",
        "removed 2 ACLs",
    ]


def test_certificates_by_an_authority_of_ones_own_let_a_client_in(tmp_path: Path) -> None:
    run_sample("security/certificates.sh", tmp_path, {})
    port = free_port()
    place = {"127.0.0.1:9093": f"127.0.0.1:{port}"}
    file = tmp_path / "server.properties"
    file.write_text(f"{text_of('security/tls.properties', place)}log.dirs={tmp_path / 'data'}\n")
    command = [sys.executable, "-m", "kpybroker", "server", str(file)]
    env = environment(tmp_path / "home")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=tmp_path) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(READY)
            assert run_sample("security/tls_client.py", tmp_path, place) == "sealed\n"
        finally:
            os.kill(process.pid, signal.SIGTERM)


def test_every_key_of_the_samples_of_tls_has_an_effect() -> None:
    assert unknown_or_without_effect(load_properties(str(SAMPLES / "security" / "tls.properties"))) == []
    client = load_properties(str(SAMPLES / "security" / "tls-client.properties"))
    assert client.pop("security.protocol") == "SSL", "a key of clients alone; the others are a broker's too"
    assert unknown_or_without_effect(client | {"listeners": "SSL://:9"}) == []


def test_dev_with_tls_prints_settings_that_work(tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    with dev_broker(tmp_path / "data", "--tls") as running:
        files = tmp_path / "data-tls"
        settings = {"bootstrap.servers": running.bootstrap, "security.protocol": "SSL"}
        settings |= {"ssl.ca.location": str(files / "ca.pem")}
        assert AdminClient(settings).list_topics(timeout=120).cluster_id


def test_the_check_of_passwords_knows_its_user() -> None:
    check = module_of(SAMPLES / "security" / "check_passwords.py").check
    assert check("dora", "dora-secret")
    assert not check("dora", "other")
    assert not check("ghost", "dora-secret")


@pytest.mark.parametrize(("sasl", "mechanism"), [("plain", "PLAIN"), ("scram", "SCRAM-SHA-256")])
def test_dev_with_logins_lets_its_users_in(tmp_path: Path, sasl: str, mechanism: str) -> None:
    with dev_broker(tmp_path / "data", "--sasl", sasl) as running:
        assert cluster_id(running.bootstrap, mechanism)
        assert cluster_id(running.bootstrap, mechanism, **{"sasl.username": "admin", "sasl.password": "admin-secret"})
