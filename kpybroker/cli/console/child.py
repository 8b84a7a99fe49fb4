"""`kpybroker dev --console`: the console as a child process, which ends with the broker however that ends.

The port is bound here, before the broker starts: a taken one is an error at once, and a browser that is quicker than
the console waits for it. The child gets the listening socket; on Windows, which passes none on, it binds the port
itself. It watches this process (`--exit-with`), so it ends after a `kill -9` of the broker too. Its login is read from
standard input: everybody on the machine can read the arguments of a process.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final

from kpybroker.broker.lifecycle.errors import EXIT_PORT
from kpybroker.cli.exit_codes import EXIT_CONFIG, fail
from kpybroker.client.commands.options import EXTRA
from kpybroker.system import OWN_SESSION, PASSES_SOCKETS, listening

logger = logging.getLogger("kafka.server.KafkaServer")

HOST: Final = "127.0.0.1"
PACKAGES: Final = ("confluent_kafka", *(name for name, extra in EXTRA.items() if extra == "console"))
"""Of the extra `console`."""
STOP_S_MAX: Final = 3.0


class ChildConsole:
    """A console that is not running yet, at `url`. `client` is what its Kafka client sets."""

    def __init__(self, listener: socket.socket, client: Mapping[str, str]) -> None:
        self._listener = listener
        self._client = client
        self.url: Final = f"http://{HOST}:{listener.getsockname()[1]}/"

    def command(self, bootstrap: str, control: str | None) -> list[str]:
        """What is run, for brokers at `bootstrap`."""
        options = ["--allow-changes", "--exit-with", str(os.getpid()), "-b", bootstrap]
        if control is not None:
            options += ["--control", control]
        if PASSES_SOCKETS:
            options += ["--socket", str(self._listener.fileno())]
        else:
            options += ["--port", str(self._listener.getsockname()[1])]
        if self._client:
            options.append("--options-from-stdin")
        return [sys.executable, "-m", "kpybroker", "console", *options]

    async def run(self, bootstrap: str, control: str | None) -> None:
        """Run it until cancelled, or until it fails: the broker goes on without it."""
        import trio

        async def stop(process: trio.Process) -> None:
            with trio.move_on_after(STOP_S_MAX):
                process.terminate()
                await process.wait()
                return
            process.kill()

        passed: dict[str, Any] = {"pass_fds": (self._listener.fileno(),)} if PASSES_SOCKETS else {}
        command = self.command(bootstrap, control)
        if not PASSES_SOCKETS:
            self._listener.close()
        done = await trio.run_process(
            command,
            stdin="".join(f"{key}={value}\n" for key, value in self._client.items()).encode(),
            stdout=subprocess.DEVNULL,
            check=False,
            deliver_cancel=stop,
            **OWN_SESSION,
            **passed,
        )
        logger.warning("The console has ended with exit code %d; kpybroker console starts another", done.returncode)

    def close(self) -> None:
        """Free the port."""
        self._listener.close()


def prepare(port: int, client: Mapping[str, str]) -> ChildConsole:
    """A console at a port of loopback, 0 for a free one. Ends the process where it cannot be."""
    missing = next((name for name in PACKAGES if find_spec(name) is None), None)
    if missing is not None:
        fail(
            f"--console needs {missing}, which is not installed",
            "pip install 'kpybroker[console]', or leave --console out",
            EXIT_CONFIG,
        )
    try:
        return ChildConsole(listening(HOST, port), client)
    except OSError as error:
        fail(
            f"the console cannot listen on {HOST}:{port}: {error.strerror or error}",
            "choose another port: --console PORT, 0 for a free one",
            EXIT_PORT,
        )
