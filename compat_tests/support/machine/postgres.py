"""A PostgreSQL of a test's own, from the system's packages, with logical decoding: for connectors and change data.

It runs in a directory of its own, on a free port of 127.0.0.1, for a superuser `shop` without a password, and it
refuses to be root's: a root runs it as the user `postgres`, whom Debian's package makes. `crash` is what a machine
that fails does to it; what was committed is there again after the next `start`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from compat_tests.deps import postgres_programs
from compat_tests.support.services import Service
from tests.support.network.ports import free_port

USER = DATABASE = "shop"
SYSTEM_USER = "postgres"
STATEMENT_DEADLINE_S = 60.0
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": "8",
    "max_replication_slots": "8",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "wal_sender_timeout": "10s",
    "lc_messages": "C",
}
READY = "database system is ready to accept connections"


class SqlError(Exception):
    """A statement was refused, or no server took it; the message is psql's."""


def postgres_is_here() -> bool:
    return postgres_programs() is not None


class Postgres:
    """A server; `start` before use, `close` at the end."""

    def __init__(self) -> None:
        programs = postgres_programs()
        assert programs is not None, "PostgreSQL is missing: python compat_tests/deps.py field"
        self._programs = programs
        self.port = free_port()
        # pytest's own directories are closed to other users
        self.directory = Path(tempfile.mkdtemp(prefix="compat-postgres-"))
        self._data = self.directory / "data"
        as_user: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(self.directory, SYSTEM_USER)
            ids = [f"--reuid={SYSTEM_USER}", f"--regid={SYSTEM_USER}", "--clear-groups"]
            as_user = ["setpriv", *ids, "--pdeathsig", "KILL", "--"]
        self._as_user = as_user
        flags = [word for key, value in SETTINGS.items() for word in ("-c", f"{key}={value}")]
        command = [*as_user, str(programs / "postgres"), "-D", str(self._data), "-p", str(self.port), *flags]
        self.service = Service("postgres", command, self.directory)

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}?user={USER}"

    def start(self) -> None:
        """With an empty database, the first time."""
        is_new = not self._data.exists()
        if is_new:
            initdb = [str(self._programs / "initdb"), "-D", str(self._data), "-U", USER, "-A", "trust", "-E", "UTF8"]
            self._run([*self._as_user, *initdb, "--no-sync", "--locale=C"])
        self.service.start(lambda output: READY in output)
        if is_new:
            self.execute(f"create database {DATABASE}", database="postgres")

    def stop(self) -> None:
        """Fast shutdown: connections are ended, a checkpoint is written."""
        if self.service.running:
            os.kill(self.service.pid, signal.SIGINT)
        code = self.service.stop()
        assert code == 0, f"exit code {code}:\n{self.service.tail()}"

    def crash(self) -> None:
        """SIGQUIT: the server and its processes end at once, without a checkpoint; recovery is the next start's."""
        os.kill(self.service.pid, signal.SIGQUIT)
        self.service.stop()

    def restart(self, crash: bool = False) -> None:
        if crash:
            self.crash()
        else:
            self.stop()
        self.start()

    def close(self) -> None:
        if self.service.running:
            self.crash()
        shutil.rmtree(self.directory, ignore_errors=True)

    def execute(self, sql: str, database: str = DATABASE) -> list[list[str]]:
        """Run statements; the rows of those that have some, each value as text, null as an empty one.

        Several statements are one transaction, unless they say otherwise. Raises SqlError.
        """
        quiet = ["-X", "-A", "-t", "-q", "-F", "\t", "-v", "ON_ERROR_STOP=1"]
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database]
        # -c, not standard input: it sends all as one message
        said = self._run([str(self._programs / "psql"), *quiet, *where, "-c", sql])
        return [line.split("\t") for line in said.splitlines()]

    def _run(self, command: list[str]) -> str:
        environment = {**os.environ, "LC_ALL": "C", "PGCONNECT_TIMEOUT": "10"}
        done = subprocess.run(
            command, cwd=self.directory, env=environment, capture_output=True, timeout=STATEMENT_DEADLINE_S, text=True
        )
        if done.returncode != 0:
            raise SqlError(f"{command[-1]}: {done.stderr.strip()}")
        return done.stdout
