"""The samples of the docs do what their pages say. Those that need Kafka's own tools: `compat_tests/docs`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from kpybroker.broker.metrics.reporters.configured import otlp_headers, otlp_url
from kpybroker.cli.processes.derive import derive
from kpybroker.client.connect.settings import ENVIRONMENT, Connection, load
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.interpret import interpret
from kpybroker.config.sources.properties import load_properties
from kpybroker.metrics.graphite import Layout, lines
from kpybroker.metrics.reading import Reading
from kpybroker.metrics.spelling import Spelling
from kpybroker.metrics.tables import log, requests, topics
from kpybroker.testing import Cluster
from tests.support.network.ports import free_port
from tests.support.programs.pytest_runs import pytest_command
from tests.support.programs.samples import (
    SAMPLES,
    DevBroker,
    dev_broker,
    environment,
    run_sample,
    text_of,
    unknown_or_without_effect,
)

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    with dev_broker(tmp_path_factory.mktemp("samples") / "data") as running:
        yield running


@pytest.fixture
def commands(broker: DevBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kpybroker topic` and the others have the broker as their default."""
    monkeypatch.setenv(ENVIRONMENT, broker.bootstrap)


def places(broker: DevBroker) -> dict[str, str]:
    return {"127.0.0.1:9092": broker.bootstrap, "~/.local/share/kpybroker": str(broker.data)}


@needs_kcat
def test_the_first_message_arrives_and_can_be_looked_at(broker: DevBroker, tmp_path: Path) -> None:
    assert run_sample("start/first-message.sh", tmp_path, places(broker)) == "hello\n"
    out = run_sample("start/look-inside.sh", tmp_path, places(broker))
    assert "null => hello" in out
    assert "1 record, 73 bytes; 0 errors" in out


def test_a_topic_goes_to_a_file_and_back(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    assert run_sample("start/first_message.py", tmp_path, places(broker)).split()[::2] == ["greetings", "hello"]
    run_sample("backup/topic.sh", tmp_path, places(broker))
    assert '"key":"en","value":"hello"' in (tmp_path / "greetings.jsonl").read_text()
    out = run_sample("start/look-inside.sh", tmp_path, {**places(broker), "demo-0": "greetings-restored-0"})
    assert "en => hello" in out


def test_topics_are_made_changed_and_deleted(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    out = run_sample("commands/topics.sh", tmp_path, {"orders": "orders-of-topics"})
    assert "orders-of-topics  created" in out
    assert re.search(r"retention.ms\s+86400000\s+topic", out)
    assert "orders-of-topics  altered" in out


@needs_jq
def test_records_are_written_read_and_copied(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    assert re.search(r"^k3 is at \d+:\d+$", run_sample("commands/write.sh", tmp_path, {}), re.MULTILINE)
    read = run_sample("commands/read.sh", tmp_path, {"readers": "readers-of-read"})
    assert "k2=second source=shell" in read
    assert '{"key":"k3","value":"third"}' in read
    run_sample("commands/copy.sh", tmp_path, {})
    assert (tmp_path / "orders.jsonl").read_text().count("\n") == 4
    copied, found = (read_values(name, broker, tmp_path) for name in ("orders-copy", "found"))
    assert sorted(copied) == ["first", "hello", "second", "third"]
    assert found == ["second"]
    described = run_json("topic", "describe", "orders", "orders-copy", "orders-empty", directory=tmp_path)
    assert len({len(row["partitions"]) for row in described}) == 1


@needs_jq
def test_values_with_a_schema_are_json(
    broker: DevBroker, commands: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}],
    }
    with external(broker) as registry:
        httpx.post(f"{registry}/subjects/orders-value/versions", json={"schema": json.dumps(schema)}).raise_for_status()
        monkeypatch.setenv("KPYBROKER_SCHEMA_REGISTRY", registry)
        out = run_sample("commands/schemas.sh", tmp_path, {"orders --": "orders-of-schemas --"})
    assert out == '{"id":7,"note":"in a hurry"}\n'


@contextmanager
def external(broker: DevBroker) -> Iterator[str]:
    """The address of a `kpybroker registry` for the broker."""
    command = [sys.executable, "-m", "kpybroker", "registry", "-b", broker.bootstrap, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1].rstrip("/")
        finally:
            process.terminate()


def run_json(*words: str, directory: Path) -> Any:
    command = ["kpybroker", *words, "--format", "json"]
    done = subprocess.run(command, env=environment(directory / "data"), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def read_values(topic: str, broker: DevBroker, directory: Path) -> list[str]:
    command = ["kpybroker", "topic", "consume", topic, "--exit"]
    env = environment(directory / "data")
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()


@needs_jq
def test_programs_use_what_the_commands_print(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    renamed = {"readers": "readers-of-programs", "greetings": "of-programs"}
    run_sample("start/first_message.py", tmp_path, {**places(broker), **renamed})
    renamed |= {"orders": "orders-of-programs"}
    assert "TOPIC_ALREADY_EXISTS" not in run_sample("commands/programs.sh", tmp_path, renamed)
    again = run_sample("commands/programs.sh", tmp_path, renamed)
    assert "orders-of-programs\n" in again
    assert "TOPIC_ALREADY_EXISTS" in again


def test_retention_is_set_changed_and_shown(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    out = run_sample("tools/retention.sh", tmp_path, {})
    assert "clicks  created" in out
    assert "accounts  created" in out
    assert re.search(r"retention.ms\s+86400000\s+topic", out)
    assert re.search(r"segment.bytes\s+1073741824\s+default", out)


def test_a_group_is_described_moved_and_deleted(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    moved = {"readers": "readers-of-groups", "greetings": "greetings-of-groups"}
    run_sample("start/first_message.py", tmp_path, {**places(broker), **moved})
    out = run_sample("tools/groups.sh", tmp_path, moved)
    assert "CURRENT-OFFSET" in out
    assert "would move" in out
    assert "moved" in out.replace("would move", "")
    assert re.search(r"readers-of-groups\s+deleted", out)


def test_records_are_deleted_below_an_offset(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    trimmed = {"greetings": "trimmed", "readers": "readers-of-trimmed"}
    run_sample("start/first_message.py", tmp_path, {**places(broker), **trimmed})
    out = run_sample("tools/delete-records.sh", tmp_path, {"clicks": "trimmed"})
    assert re.search(r"trimmed\s+0\s+0\s+1\s+1\s+trimmed", out)


def test_a_look_at_transactions_finds_none(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    assert run_sample("tools/transactions.sh", tmp_path, {}) == ""


def test_partitions_are_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(3) as cluster:
        monkeypatch.setenv(ENVIRONMENT, cluster.bootstrap_servers)
        run_json("topic", "create", "orders", "--replica-assignment", "0,0", directory=tmp_path)
        out = run_sample("commands/partitions.sh", tmp_path, {})
    assert re.search(r"^orders +0 +0 +1 +moved$", out, re.MULTILINE)
    assert re.search(r"^orders +0 +\d +\d,\d,\d +moved$", out, re.MULTILINE)
    before = json.loads((tmp_path / "before.json").read_text())["partitions"]
    assert [one["replicas"] for one in before] == [[0], [0]]


def test_the_file_of_a_client_is_understood(tmp_path: Path) -> None:
    file, certificate = tmp_path / "client.properties", tmp_path / "ca.pem"
    certificate.write_text("-----BEGIN CERTIFICATE-----\n")
    file.write_text(text_of("commands/client.properties", {"/etc/kafka/ca.pem": str(certificate)}))
    settings = load(Connection(command_config=str(file)))
    assert settings.bootstrap == "broker.example.com:9093"
    assert settings.properties == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
        "ssl.ca.location": str(certificate),
    }


def test_a_profile_is_made_and_used(broker: DevBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (ENVIRONMENT, "KPYBROKER_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "client.properties").write_text("security.protocol=SASL_SSL\nsasl.password=alice-secret\n")
    out = run_sample("commands/profiles.sh", tmp_path, places(broker))
    assert re.search(rf"^local +yes +{broker.bootstrap} +PLAINTEXT", out, re.MULTILINE)
    assert re.search(r"^sasl.password +\*\*\*$", out, re.MULTILINE)
    assert "alice-secret" not in out


def test_the_lag_of_a_group_is_shown(broker: DevBroker, tmp_path: Path) -> None:
    run_sample("start/first_message.py", tmp_path, {**places(broker), "readers": "readers-of-lag"})
    out = run_sample("tools/lag.py", tmp_path, {**places(broker), '"readers"': '"readers-of-lag"'})
    assert re.fullmatch(r"greetings-0: \d+ behind\n", out)


def test_the_fixture_for_ci_serves_a_test(tmp_path: Path) -> None:
    for name in ("conftest.py", "test_orders.py"):
        shutil.copy(SAMPLES / "ci" / name, tmp_path)
    command = pytest_command("-q", "--rootdir", ".", ".")
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path / "data"), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_a_shell_script_can_wait_for_the_broker(tmp_path: Path) -> None:
    port = free_port()
    replaced = {"--ephemeral": f"--ephemeral --port {port}", ":9092": f":{port}"}
    script = text_of("ci/service.sh", replaced) + "kill $!; wait $!\n"
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment(tmp_path / "data"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"127.0.0.1:{port} responds" in done.stdout


@needs_kcat
def test_the_address_that_clients_get_is_shown(broker: DevBroker, tmp_path: Path) -> None:
    out = run_sample("container/addresses.sh", tmp_path, places(broker))
    assert out.strip() == f"broker 0 at {broker.bootstrap} (controller)"


def test_the_keys_of_the_cluster_have_an_effect() -> None:
    assert unknown_or_without_effect(load_properties(str(SAMPLES / "cluster" / "server.properties"))) == []


def test_a_copy_of_a_stopped_brokers_directory_is_sound(tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data") as running:
        run_sample("start/first_message.py", tmp_path, {"127.0.0.1:9092": running.bootstrap})
    (tmp_path / "backup").mkdir()
    replaced = {"~/.local/share/kpybroker": str(tmp_path / "data"), "/backup": str(tmp_path / "backup")}
    assert ", 0 errors" in run_sample("backup/backup.sh", tmp_path, replaced).replace(";", ",")


def test_a_broker_goes_on_with_the_files_of_another(tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data") as running:
        run_sample("start/first_message.py", tmp_path, {"127.0.0.1:9092": running.bootstrap})
    properties = tmp_path / "server.properties"
    properties.write_text(f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n")
    script = text_of(
        "moving/check.sh",
        {"/var/lib/kafka/data": str(tmp_path / "data"), "/etc/kafka/server.properties": str(properties)},
    )
    env = environment(tmp_path / "data")
    command = ["bash", "-ec", script + "\n"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout)
            assert any("0 errors" in line for line in lines)
            assert any(line.startswith("kpybroker ready at") for line in lines)
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # the shell and the broker that it started


@pytest.mark.parametrize(
    ("sample", "printed"),
    [
        ("python/codec.py", r"demo\n"),
        ("python/records.py", r"0 b'en' b'hello'\n1 b'fr' b'bonjour'\n"),
        ("python/embedded.py", r"serving at 127.0.0.1:\d+\n"),
    ],
)
def test_what_the_python_api_does(tmp_path: Path, sample: str, printed: str) -> None:
    assert re.fullmatch(printed, run_sample(sample, tmp_path, {}))


def test_a_service_locks_through_the_tree(tmp_path: Path) -> None:
    started = text_of("zookeeper/start.sh", {"2181": "0"}).split()
    assert started[:2] == ["kpybroker", "dev"]
    with dev_broker(tmp_path / "data", *started[2:]) as running:
        assert run_sample("zookeeper/lock.py", tmp_path, {"127.0.0.1:2181": running.zookeeper}) == "brokers: ['0']\n"
    config = BrokerConfig(load_properties(str(SAMPLES / "zookeeper" / "server.properties")))
    assert config.get_int("kpybroker.zookeeper.port") == 2181


def test_one_file_describes_several_processes() -> None:
    start, dev = (text_of(f"processes/{name}.sh", {}).split() for name in ("start", "dev"))
    assert start == ["kpybroker", "server", "server.properties", "--processes", "4"]
    assert dev == ["kpybroker", "dev", "--brokers", "2", "--processes"]
    made = derive(load_properties(str(SAMPLES / "processes" / "server.properties")), 4)
    assert [one["listeners"] for one in made] == [f"PLAINTEXT://127.0.0.1:{port}" for port in range(9092, 9096)]
    assert [one["log.dirs"] for one in made] == [f"/var/lib/kpybroker/broker-{number}" for number in range(4)]


def test_the_samples_of_metrics_have_keys_and_a_spelling_that_exist() -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "samples" / "metrics"
    lines = (folder / "metrics.properties").read_text().split()
    config = BrokerConfig(dict(line.split("=") for line in lines))
    assert (config.get_int("kpybroker.metrics.port"), config.get_str("kpybroker.metrics.host")) == (9404, "0.0.0.0")
    jobs = yaml.safe_load((folder / "prometheus.yml").read_text())["scrape_configs"]
    assert [Spelling(name) for job in jobs for name in job.get("params", {}).get("spelling", [])]
    assert {target.partition(":")[2] for job in jobs for one in job["static_configs"] for target in one["targets"]} == {
        "9404"
    }


def sample_config(name: str) -> BrokerConfig:
    props = load_properties(str(SAMPLES / "metrics" / name))
    assert not interpret(props).notes
    return BrokerConfig(props)


def test_the_sample_of_graphite_excludes_what_it_says() -> None:
    config = sample_config("graphite.properties")
    assert config.reports_to_graphite
    assert not config.get_bool("kafka.graphite.dimension.enabled.median")
    exclude = re.compile(config.get_str("kafka.graphite.metrics.exclude.regex"))
    readings = [
        Reading([("orders",)], [(topics.MESSAGES_IN, [3])]),
        Reading([("orders", "0")], [(log.SIZE, [1])]),
        Reading([("Produce", "9")], [(requests.REQUESTS, [1])]),
    ]
    layout = Layout(config.get_str("kafka.graphite.metrics.group"), exclude)
    text = "".join(lines(readings, layout, {}, 0.0, 1700000000))
    assert text in (SAMPLES.parent / "guides" / "metrics.md").read_text()
    assert text.count("\n") == 1


def test_the_samples_of_client_metrics_ask_and_ask_no_more(broker: DevBroker, commands: None, tmp_path: Path) -> None:
    config = sample_config("client-metrics.properties")
    assert (config.get_str("kpybroker.client.metrics"), config.get_int("kpybroker.metrics.port")) == ("on", 9404)
    out = run_sample("metrics/client-metrics.sh", tmp_path, {})
    assert re.search(r"metrics\s+org\.apache\.kafka\.producer\.", out)
    assert re.search(r"match\s+client_software_name=apache-kafka-java", out)


def test_the_sample_of_otlp_has_an_address_and_a_header() -> None:
    config = sample_config("otlp.properties")
    assert otlp_url(config.get_str("kpybroker.otlp.endpoint")) == "https://collector.example:4318/v1/metrics"
    assert otlp_headers(config) == {"Authorization": "Bearer TOKEN"}
    collector = yaml.safe_load((SAMPLES / "metrics" / "collector.yaml").read_text())
    pipeline = collector["service"]["pipelines"]["metrics"]
    assert pipeline == {"receivers": list(collector["receivers"]), "exporters": list(collector["exporters"])}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_mbeans_are_read_over_http(tmp_path: Path) -> None:
    port = free_port()
    with dev_broker(tmp_path / "data", "--override", f"kpybroker.metrics.port={port}"):
        out = run_sample("metrics/jolokia.sh", tmp_path, {"localhost:9404": f"127.0.0.1:{port}"})
    assert '"attribute":"Value"},"value":' in out.replace(" ", "")
    assert '"kafka.server:name=MessagesInPerSec,type=BrokerTopicMetrics":{"Count":' in out.replace(" ", "")
    assert out.count('"status":200') == 4


def test_mbeans_are_watched(tmp_path: Path) -> None:
    port = free_port()
    with dev_broker(tmp_path / "data", "--override", f"kpybroker.metrics.port={port}") as broker:
        run_sample("start/first_message.py", tmp_path, places(broker))
        out = run_sample("metrics/watch.sh", tmp_path, {"localhost:9404": f"127.0.0.1:{port}"}).splitlines()
    assert "kafka.log:type=Log,name=Size,topic=greetings,partition=0" in out
    traffic, count = "BrokerTopicMetrics,name=MessagesInPerSec", "ReplicaManager,name=PartitionCount"
    assert out[-2] == f'"time","kafka.server:type={traffic}:Count","kafka.server:type={count}:Value"'
    assert re.fullmatch(r"\d{13},\d+,\d+", out[-1])
