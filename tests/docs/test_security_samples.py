"""The samples of the security guides do what their pages say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kpybroker.config.sources.properties import load_properties
from tests.support.ports import free_port
from tests.support.samples import (
    READY,
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


def cluster_id(bootstrap: str, mechanism: str, **changed: str) -> str:
    from confluent_kafka.admin import AdminClient

    settings = {"bootstrap.servers": bootstrap, "sasl.mechanisms": mechanism, **SETTINGS, **changed}
    return str(AdminClient(settings).list_topics(timeout=30).cluster_id)


def test_a_user_is_created_logs_in_and_is_removed(tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data", "--sasl", "scram") as running:
        out = run_sample("security/scram_users.py", tmp_path, {"127.0.0.1:9092": running.bootstrap})
    first, second = out.splitlines()
    assert first.startswith("carol is logged in at cluster ")
    assert second == "carol is gone"


def test_every_key_of_the_sample_has_an_effect() -> None:
    assert unknown_or_without_effect(load_properties(str(SAMPLES / "security" / "sasl.properties"))) == []


def test_a_broker_of_the_sample_serves_both_mechanisms(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "server.properties"
    text = text_of("security/sasl.properties", {"127.0.0.1:9092": f"127.0.0.1:{port}"})
    file.write_text(f"{text}log.dirs={tmp_path / 'data'}\n")
    command = [sys.executable, "-m", "kpybroker", "server", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(tmp_path / "home")) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(READY)
            assert len({cluster_id(f"127.0.0.1:{port}", m) for m in ("PLAIN", "SCRAM-SHA-256")}) == 1
        finally:
            os.kill(process.pid, signal.SIGTERM)


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
