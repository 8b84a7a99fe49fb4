"""A broker for the test session: a free port, nothing kept, gone when the tests end."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

READY = "kpybroker ready at "


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The broker's address, as `host:port`."""
    command = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--ephemeral"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        ready = broker.stdout.readline()
        assert ready.startswith(READY), "the broker did not start: see its standard error"
        yield ready.removeprefix(READY).split()[0]
        broker.terminate()
