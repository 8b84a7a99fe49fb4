"""What a user does first with an installed kpybroker: start it, write, read, stop it.

    cd /somewhere/else && /path/to/venv/bin/python smoke.py

It needs kpybroker and confluent-kafka, and imports nothing of a checkout. It ends with an AssertionError if anything is
wrong, or is left behind: a process, a port, a file.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

import kpybroker

READY = "kpybroker ready at "
SECONDS_MAX = 60
RECORDS = 100


def check_where_it_is() -> None:
    """The package is the environment's own, complete, and of the version that it says."""
    package = Path(kpybroker.__file__).resolve()
    assert Path(sys.prefix).resolve() in package.parents, f"{package} is not in {sys.prefix}"
    assert metadata.version("kpybroker") == kpybroker.__version__
    assert resources.files("kpybroker").joinpath("py.typed").is_file()


def command(*arguments: str) -> list[str]:
    """The environment's `kpybroker`."""
    return [str(Path(sys.executable).with_name("kpybroker")), *arguments]


def write_and_read(address: str) -> None:
    """Write a hundred records with stock librdkafka, and read them in a group."""
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "compression.type": "zstd"})
    for number in range(RECORDS):
        producer.produce("smoke", key=str(number % 3), value=str(number))
    assert producer.flush(SECONDS_MAX) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "smoke", "auto.offset.reset": "earliest"})
    consumer.subscribe(["smoke"])
    read = consumer.consume(RECORDS, SECONDS_MAX)
    consumer.close()
    assert [int(message.value()) for message in read] == list(range(RECORDS))


def main() -> None:
    """Everything, in order."""
    check_where_it_is()
    version = subprocess.run(command("--version"), capture_output=True, text=True, check=True).stdout
    assert version == f"kpybroker {kpybroker.__version__}\n", version
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "TMPDIR": directory}
        broker = subprocess.Popen(
            command("dev", "--port", "0", "--ephemeral"), stdout=subprocess.PIPE, text=True, env=environment
        )
        try:
            assert broker.stdout is not None
            ready = next((line for line in broker.stdout if line.startswith(READY)), None)
            assert ready is not None, "the broker did not start"
            address = ready.removeprefix(READY).strip()
            subprocess.run(command("ping", address), stdout=subprocess.DEVNULL, check=True)
            write_and_read(address)
            broker.terminate()
            broker.communicate(timeout=SECONDS_MAX)
        finally:
            broker.kill()
            broker.wait()
        assert broker.returncode == 0, f"exit code {broker.returncode}"
        assert os.listdir(directory) == [], os.listdir(directory)
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        assert probe.connect_ex((host, int(port))) != 0, f"{address} is still open"
    print(f"kpybroker {kpybroker.__version__} works on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
