"""The samples of docs/guides/security, run with Kafka's own tools against a broker of the sample's own settings."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.security.logins.kdc import REALM, realm
from compat_tests.support.services import Service, kpybroker_executable
from compat_tests.support.tools import Tools, run_process
from kpybroker.broker.security.oauthbearer import MODULE
from kpybroker.config.sources.jaas import parse_login_modules
from kpybroker.config.sources.properties import load_properties
from tests.support.network.bearer import document, rsa_key, signed
from tests.support.network.ports import free_port
from tests.support.programs.samples import SAMPLES

SECURITY = SAMPLES / "security"


@contextmanager
def broker_of(sample: str, directory: Path, **replaced: str) -> Iterator[str]:
    """A broker with the sample's server.properties and the sample's other files next to it; its address.

    `replaced` are further words of the files and what stands for them here.
    """
    shutil.copytree(SECURITY / sample, directory / "files")
    port = str(free_port())
    bootstrap = f"127.0.0.1:{port}"
    places = {"9092": port, "9093": str(free_port()), "/var/lib/kpybroker": str(directory / "data"), **replaced}
    for file in (directory / "files").iterdir():
        text = file.read_text()
        for theirs, ours in places.items():
            text = text.replace(theirs, ours)
        file.write_text(text)
    command = [str(kpybroker_executable()), "server", str(directory / "files" / "server.properties")]
    service = Service("kpybroker", command, directory)
    service.start(lambda output: "[KafkaServer id=0] started" in output)
    try:
        yield bootstrap
    finally:
        service.kill()


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the Kafka tools that the samples run."""
    directory = tmp_path_factory.mktemp("commands")
    for name in ("delegation-tokens", "console-producer", "console-consumer"):
        words = [word for word in Tools("3.9.1", "-").command(name) if word not in ("--bootstrap-server", "-")]
        script = directory / f"kafka-{name}.sh"
        quoted = " ".join(f"'{word}'" for word in words)
        script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
        script.chmod(0o755)
    return directory


def test_tokens(commands: Path, tmp_path: Path) -> None:
    with broker_of("tokens", tmp_path) as bootstrap:
        files = tmp_path / "files"
        assert "alice-secret" in (files / "alice.properties").read_text()
        script = f"cd {files} && PATH={commands}:$PATH && . ./tokens.sh"
        out = run_process(["sh", "-ec", script]).out
        rows = [line.split() for line in out.splitlines() if "User:alice" in line and "User:bob" in line]
        token_id, hmac = rows[0][:2]
        assert [row[0] for row in rows] == [token_id] * 2
        login = files / "token.properties"
        login.write_text(login.read_text().replace("TOKENID", token_id).replace("HMAC", hmac))
        tools = Tools("3.9.1", bootstrap)
        tools.run("console-producer", "--topic", "t", "--producer.config", str(login), stdin="one\n")
        arguments = ["--topic", "t", "--from-beginning", "--max-messages", "1", "--consumer.config", str(login)]
        assert tools.run("console-consumer", *arguments).lines == ["one"]


def test_oauthbearer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = rsa_key()
    keys = tmp_path / "keys.json"
    keys.write_bytes(document(key))
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + 600, "aud": "kafka", "iss": "https://login.example/"}
    with broker_of("oauthbearer", tmp_path, **{"https://login.example/keys": keys.as_uri()}):
        monkeypatch.setenv("TOKEN", signed(key, claims))
        assert run_process([sys.executable, str(tmp_path / "files" / "client.py")]).lines == ["delivered"]


def test_kerberos(tmp_path: Path) -> None:
    (tmp_path / "kdc").mkdir()
    with realm(tmp_path / "kdc", ["alice", "kafka/localhost"]) as kdc:
        places = {
            "EXAMPLE.COM": REALM,
            "/etc/kafka/kafka.keytab": str(kdc.keytab("kafka/localhost")),
            "/etc/kafka/alice.keytab": str(kdc.keytab("alice")),
        }
        with broker_of("kerberos", tmp_path, **places):
            out = run_process(["sh", "-e", str(tmp_path / "files" / "kcat.sh")]).out
            assert "1 brokers" in out


def test_unsecured_tokens() -> None:
    unsecured = load_properties(str(SECURITY / "oauthbearer" / "unsecured.properties"))
    (jaas,) = unsecured.values()
    (module,) = parse_login_modules("the sample", jaas)
    assert module.name == MODULE
    assert module.options["unsecuredValidatorRequiredScope"] == "kafka"
