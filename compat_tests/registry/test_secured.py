"""https and a login at the registry, TLS, SCRAM and ACLs at the broker; and an instance that forwards over https."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from compat_tests.registry.conftest import Instance
from kpybroker.testing import Broker
from tests.support.network.certificates import Authority

START_S = 180.0
PASSWORD = "s3cret-of-alice"


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(tls=True, sasl="scram", acl=True, start_timeout=START_S) as broker:
        yield broker


def arguments(secured: Broker, directory: Path, authority: Authority) -> list[str]:
    """What an instance at 127.0.0.1 is started with; its password is in files only."""
    properties = directory / "client.properties"
    keys = secured.config("java", user="admin")
    properties.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    users = directory / "users"
    command = [sys.executable, "-m", "kpybroker", "registry", "--users-file", str(users), "--add-user", "alice"]
    subprocess.run(command, input=PASSWORD, text=True, check=True)
    pem, _ = authority.issue("registry")
    own = ["-b", secured.bootstrap_servers, "--command-config", str(properties), "--users-file", str(users)]
    return [*own, "--cert-file", str(pem), "--key-file", str(pem), "--ca-file", str(authority.certificate)]


def test_only_users_come_in_and_nothing_is_said_of_passwords(secured: Broker, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    given = arguments(secured, tmp_path, authority)
    log = tmp_path / "registry.log"
    instances = [Instance(*given, log=log), Instance(*given, log=log)]
    try:
        assert instances[0].url.startswith("https://127.0.0.1:")
        conf = {"ssl.ca.location": str(authority.certificate), "max.retries": 0}
        for instance in instances:
            right = SchemaRegistryClient({"url": instance.url, **conf, "basic.auth.user.info": f"alice:{PASSWORD}"})
            assert right.register_schema(f"of-{instance.url[-5:]}", Schema('"int"', "AVRO")) == 1
            for login in ({}, {"basic.auth.user.info": "alice:wrong"}, {"basic.auth.user.info": "bob:x"}):
                with pytest.raises(SchemaRegistryError) as refused:
                    SchemaRegistryClient({"url": instance.url, **conf, **login}).get_subjects()
                assert refused.value.http_status_code == 401
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{instances[0].url}/subjects")  # the authority is not trusted
        for instance in instances:
            assert instance.stop() == 0
    finally:
        for instance in instances:
            instance.close()
    written = log.read_text()
    assert "elected" in written
    for secret in (
        PASSWORD,
        secured.config("java", user="admin")["sasl.jaas.config"].split('password="')[1].split('"')[0],
    ):
        assert secret not in written
