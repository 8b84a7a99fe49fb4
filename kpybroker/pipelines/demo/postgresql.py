"""A PostgreSQL server of the demo's own, from the system's packages, with logical decoding.

It runs in a directory of its own on a free port of 127.0.0.1, for a superuser `shop` without a password. It refuses to
be root's: root runs it as the user `postgres`, whom Debian's package makes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kpybroker.pipelines.errors import PipelineError

USER = DATABASE = "shop"
SYSTEM_USER = "postgres"
INSTALLED = Path("/usr/lib/postgresql")
SETTINGS = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "wal_level=logical", "shared_buffers=32MB")
SECONDS_MAX, POLL_S = 60.0, 0.1


def programs() -> Path:
    """Where `initdb`, `postgres` and `psql` are. Raises `PipelineError`."""
    found = sorted(INSTALLED.glob("*/bin/initdb"), key=lambda one: int(one.parent.parent.name))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    if on_path is None:
        raise PipelineError("PostgreSQL is not installed.", "apt install postgresql")
    return Path(on_path).resolve().parent


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server that runs."""

    port: int
    psql: str

    def execute(self, sql: str) -> list[list[str]]:
        """Run statements, one transaction unless they say otherwise; values as text. Raises `PipelineError`."""
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", DATABASE]
        quiet = ["-X", "-A", "-t", "-q", "-F", "\t", "-P", "null=∅", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(
            [self.psql, *quiet, *where, "-c", sql], capture_output=True, timeout=SECONDS_MAX, text=True
        )
        if done.returncode != 0:
            raise PipelineError(f"PostgreSQL refused a statement: {done.stderr.strip()}.", "Please report it.")
        return [line.split("\t") for line in done.stdout.splitlines()]


@contextmanager
def postgres(port: int) -> Iterator[Postgres]:
    """A server with an empty database; it ends, and its files are removed, with the block."""
    found = programs()
    directory = Path(tempfile.mkdtemp(prefix="kpybroker-postgres-"))
    as_user: list[str] = []
    if getattr(os, "geteuid", lambda: 1)() == 0:
        shutil.chown(directory, SYSTEM_USER)
        as_user = ["setpriv", f"--reuid={SYSTEM_USER}", f"--regid={SYSTEM_USER}", "--clear-groups", "--"]
    data = ["-D", str(directory / "data")]
    try:
        initdb = [str(found / "initdb"), *data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        subprocess.run([*as_user, *initdb], check=True, capture_output=True, cwd=directory)
        flags = [word for setting in SETTINGS for word in ("-c", setting)]
        command = [*as_user, str(found / "postgres"), *data, "-p", str(port), *flags]
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _make_database(found, process, port)
            yield Postgres(port, str(found / "psql"))
        finally:
            stop = [str(found / "pg_ctl"), "stop", *data, "--mode=immediate"]  # its files are removed: nothing to save
            subprocess.run([*as_user, *stop], capture_output=True, cwd=directory)
            process.wait()
    except subprocess.CalledProcessError as error:
        raise PipelineError(f"PostgreSQL did not start: {error.stderr.decode().strip()}.", "Correct that.") from None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _make_database(found: Path, process: subprocess.Popen[bytes], port: int) -> None:
    create = [str(found / "createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", USER, DATABASE]
    deadline = time.monotonic() + SECONDS_MAX
    while subprocess.run(create, capture_output=True).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            raise PipelineError("PostgreSQL did not start.", f"Check that the port {port} is free.")
        time.sleep(POLL_S)
