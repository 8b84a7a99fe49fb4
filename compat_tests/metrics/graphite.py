"""Receivers of Graphite's lines: Debian's carbon, and a socket that keeps the newest report."""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path

from compat_tests.support.services import Service
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

PYTHON = "/usr/bin/python3"
"""That of Debian's packages, which has `whisper`."""
SETTINGS = """[cache]
STORAGE_DIR = {directory}
CONF_DIR = {directory}
LOG_DIR = {directory}/log
PID_DIR = {directory}
LOCAL_DATA_DIR = {directory}/whisper
USER =
MAX_CREATES_PER_MINUTE = inf
MAX_UPDATES_PER_SECOND = inf
MAX_CACHE_SIZE = inf
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = {port}
PICKLE_RECEIVER_PORT = 0
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = {query_port}
"""
RETENTION = "[all]\npattern = .*\nretentions = 1s:1h\n"


class Carbon:
    """carbon-cache, with its files in `directory`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.port = free_port()
        self._files = directory / "whisper"
        settings = SETTINGS.format(directory=directory, port=self.port, query_port=free_port())
        (directory / "carbon.conf").write_text(settings)
        (directory / "storage-schemas.conf").write_text(RETENTION)
        command = ["carbon-cache", f"--config={directory / 'carbon.conf'}", "--nodaemon", "start"]
        self.service = Service("carbon", command, directory)

    def start(self) -> None:
        self.service.start(lambda _: accepts(self.port))

    def close(self) -> None:
        self.service.kill()

    def newest(self, name: str) -> float | None:
        """The newest value of a metric; None if there is none yet."""
        path = self._files.joinpath(*name.split(".")).with_suffix(".wsp")
        if not path.exists():
            return None
        code = "import sys, whisper; print(*[v for v in whisper.fetch(sys.argv[1], 0)[1] if v is not None][-1:])"
        text = subprocess.run([PYTHON, "-c", code, path], check=True, capture_output=True, text=True).stdout.strip()
        return float(text) if text else None


def accepts(port: int) -> bool:
    """Whether something listens."""
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Lines:
    """Accepts reports; `newest` is the last whole one, name -> value."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.newest: dict[str, str] = {}
        self._count = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def next(self) -> dict[str, str]:
        """A report that begins after the call."""
        wanted = self._count + 2
        eventually(lambda: self._count >= wanted, "a report")
        return self.newest

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile(encoding="utf-8") as lines:
                found = {}
                for line in lines:
                    name, value, time = line.rstrip("\n").split(" ")
                    assert int(time) > 1_700_000_000
                    found[name] = value
                self.newest = found
                self._count += 1
