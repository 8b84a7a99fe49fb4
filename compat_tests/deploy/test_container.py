"""docs/deploy/Dockerfile, carried out in a fresh root file system: what it builds runs as a container does.

The container is process 1 of its namespaces, without root, privileges, or a writable file but those of its volume and
/tmp. `make deploy-test`; without `--deploy` these tests are skipped.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.deploy import rootfs
from compat_tests.deploy.image import Image, build
from compat_tests.packaging.pythons import ROOT
from compat_tests.support.waiting import eventually

CLIENT = Path(__file__).with_name("client.py")


@pytest.fixture(scope="module")
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    if not request.config.getoption("--deploy"):
        pytest.skip("takes --deploy: it makes a root file system")
    if (reason := rootfs.why_not()) is not None:
        pytest.skip(reason)
    return build(tmp_path_factory.mktemp("image"))


@contextmanager
def container(image: Image, volume: Path, variables: Mapping[str, str] | None = None) -> Iterator[rootfs.Process]:
    """A container of the image with `volume` as its volume; killed at the end if it still runs."""
    volume.mkdir(exist_ok=True)
    (place,) = image.volumes
    inside = image.root / place.removeprefix("/")
    os.chown(volume, inside.stat().st_uid, inside.stat().st_gid)  # an engine gives an empty volume the image's owner
    script = f"""
        mount --bind {image.root} {image.root}
        mount -t proc proc {image.root}/proc
        mount -o remount,bind,ro {image.root}
        mount --bind {volume} {inside}
        mount -t tmpfs tmpfs {image.root}/tmp
        """
    start = rootfs.as_user(
        image.root, image.user, image.directory, {**image.variables, **(variables or {})}, image.command
    )
    process = rootfs.start_in(image.root, script + start, volume.with_suffix(".log"))
    try:
        yield process
    finally:
        process.parent.kill()
        process.parent.wait()


def in_container(image: Image, process: rootfs.Process, command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command in the running container, as its user: what an engine does for a health check."""
    script = rootfs.as_user(image.root, image.user, image.directory, image.variables, command)
    return subprocess.run(process.enter(["sh", "-ec", script], "net", "pid", "mount"), capture_output=True, text=True)


def wait_until_healthy(image: Image, process: rootfs.Process, log: Path) -> None:
    def healthy() -> bool:
        if process.parent.poll() is not None:
            pytest.fail(log.read_text())
        return in_container(image, process, list(image.health)).returncode == 0

    eventually(healthy, "the health check succeeds")


def exchange(process: rootfs.Process, address: str, before: int) -> str:
    """What a client in the container's network reads of one topic, after it has written a record."""
    command = process.enter([sys.executable, CLIENT, address, "demo", str(before)], "net")
    return rootfs.run(command).strip()


def test_the_image_is_small_and_has_no_build_tools(image: Image) -> None:
    installed = image.root / "opt" / "kpybroker"
    size = sum(file.stat().st_size for file in installed.rglob("*") if file.is_file() and not file.is_symlink())
    assert size < 65e6
    assert not list(installed.glob("lib/python*/site-packages/pip"))
    assert not (image.root / "source").exists()


def test_it_serves_survives_a_new_container_and_stops_in_order(image: Image, tmp_path: Path) -> None:
    volume, log = tmp_path / "data", tmp_path / "data.log"
    for before in range(2):
        with container(image, volume) as process:
            wait_until_healthy(image, process, log)
            read = exchange(process, "127.0.0.1:9092", before)
            assert read == ", ".join(f"record {number}" for number in range(before + 1))
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert "\nUid:\t1000\t1000\t1000\t1000\n" in status
            assert "\nCapEff:\t0000000000000000\n" in status
            topics = in_container(image, process, ["kpybroker", "topic", "list"])
            assert "demo" in topics.stdout, topics.stderr
            refused = in_container(image, process, ["touch", f"{image.directory}/file"]).stderr
            assert "Read-only file system" in refused
            assert process.stop(signal.Signals[image.stop_signal]) == 0, log.read_text()
        assert "shut down completed" in log.read_text()


def test_a_container_that_does_not_serve_is_unhealthy(image: Image, tmp_path: Path) -> None:
    with container(image, tmp_path / "data", {"KAFKA_LISTENERS": "PLAINTEXT://:19092"}) as process:
        eventually(lambda: "kpybroker ready at" in (tmp_path / "data.log").read_text(), "the broker is ready")
        done = in_container(image, process, list(image.health))
        assert (done.returncode, "127.0.0.1:9092 refuses connections" in done.stderr) == (1, True)
        assert in_container(image, process, ["kpybroker", "ping", "127.0.0.1:19092"]).returncode == 0


def test_a_bad_variable_is_an_error_with_its_fix(image: Image, tmp_path: Path) -> None:
    with container(image, tmp_path / "data", {"KAFKA_NUM_PARTITIONS": "many"}) as process:
        assert process.parent.wait(60) == 2
    text = (tmp_path / "data.log").read_text()
    assert "kpybroker: Invalid value many for configuration num.partitions" in text
    assert "(from KAFKA_* variables)" in text
    assert "fix: set num.partitions" in text


def test_the_variables_of_kafkas_own_image_work_as_they_are(image: Image, tmp_path: Path) -> None:
    """A combined broker and controller, as the page of Kafka's image shows it."""
    variables = {
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
    }
    with container(image, tmp_path / "data", variables) as process:
        wait_until_healthy(image, process, tmp_path / "data.log")
        assert exchange(process, "localhost:9092", 0) == "record 0"
    text = (tmp_path / "data.log").read_text()
    assert "node.id=1 is used as broker.id" in text
    assert "KAFKA_HEAP_OPTS has no effect" in text


def test_the_names_of_the_compose_file_reach_it_from_inside_and_outside(image: Image, tmp_path: Path) -> None:
    """Both listeners of docs/deploy/compose.yaml, with the name `kafka` as the engine's DNS would resolve it."""
    import yaml

    service = yaml.safe_load((ROOT / "docs" / "deploy" / "compose.yaml").read_text())["services"]["kafka"]
    volume = tmp_path / "data"
    with container(image, volume, service["environment"]) as process:
        wait_until_healthy(image, process, tmp_path / "data.log")
        assert exchange(process, "localhost:9092", 0) == "record 0"
        named = shlex.join(["mount", "--bind", str(hosts(tmp_path)), "/etc/hosts"])
        client = shlex.join([sys.executable, str(CLIENT), "kafka:29092", "demo", "1"])
        inside = process.enter(["unshare", "--mount", "sh", "-ec", f"{named}; exec {client}"], "net")
        assert rootfs.run(inside).strip() == "record 0, record 1"


def hosts(place: Path) -> Path:
    file = place / "hosts"
    file.write_text("127.0.0.1 localhost kafka\n")
    return file
