"""`dev --console` and `dev --registry`: a command as a child process, which ends with the broker however that ends.

The port is bound here, before the broker starts: a taken one is an error at once, and a client that is quicker than
the child waits for it. The child gets the listening socket; on Windows, which passes none on, it binds the port
itself. It watches this process (`--exit-with`), so it ends after a `kill -9` of the broker too. Its login is read from
standard input: everybody on the machine can read the arguments of a process.

A child that ends is started again, and clients that connect in between wait for it. One that ends at once, time after
time, is given up: then its port is closed, so that no client waits for a page that never arrives.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from kpybroker.broker.lifecycle.errors import EXIT_PORT
from kpybroker.cli.exit_codes import EXIT_CONFIG, fail
from kpybroker.system.processes import OWN_SESSION
from kpybroker.system.sockets import PASSES_SOCKETS, listening

logger = logging.getLogger("kafka.server.KafkaServer")

HOST: Final = "127.0.0.1"
STOP_S_MAX: Final = 3.0
LIVES_S_MIN: Final = 30.0
"""A child that has lived so long did begin well."""
WAITS_S: Final = (0.5, 2.0, 5.0)
"""Before a child that has ended is started again, by how often in a row it ended at once."""


class Child:
    """`kpybroker NAME` that is not running yet, at `url`. `client` is what its Kafka client sets."""

    def __init__(self, name: str, options: Sequence[str], listener: socket.socket, client: Mapping[str, str]) -> None:
        self._name = name
        self._options = options
        self._listener = listener
        self._client = client
        self.url: Final = f"http://{HOST}:{listener.getsockname()[1]}/"

    def command(self, bootstrap: str, more: Sequence[str]) -> list[str]:
        """What is run, for brokers at `bootstrap`."""
        options = [*self._options, "--exit-with", str(os.getpid()), "-b", bootstrap, "--profile", "none", *more]
        if PASSES_SOCKETS:
            options += ["--socket", str(self._listener.fileno())]
        else:
            options += ["--port", str(self._listener.getsockname()[1])]
        if self._client:
            options.append("--options-from-stdin")
        return [sys.executable, "-m", "kpybroker", self._name, *options]

    async def run(self, bootstrap: str, more: Sequence[str] = ()) -> None:
        """Run it, with `more` options, until cancelled, and start it again when it ends: the broker goes on without it.

        It is given up where it has ended at once as often as WAITS_S has numbers, and where its options are refused.
        """
        import trio

        command = self.command(bootstrap, more)
        if not PASSES_SOCKETS:
            self._listener.close()
        waits = iter(WAITS_S)
        while True:
            began = trio.current_time()
            code = await self._run_once(command)
            if trio.current_time() - began > LIVES_S_MIN:
                waits = iter(WAITS_S)
            wait_s = None if code == EXIT_CONFIG else next(waits, None)
            if wait_s is None:
                break
            logger.warning("The %s has ended with exit code %d, and is started again", self._name, code)
            await trio.sleep(wait_s)
        text = "The %s has ended with exit code %d again, and its port is closed; kpybroker %s starts another"
        logger.error(text, self._name, code, self._name)
        self.close()

    async def _run_once(self, command: Sequence[str]) -> int:
        """The exit code of one process."""
        import trio

        async def stop(process: trio.Process) -> None:
            with trio.move_on_after(STOP_S_MAX):
                process.terminate()
                await process.wait()
                return
            process.kill()

        passed: dict[str, Any] = {"pass_fds": (self._listener.fileno(),)} if PASSES_SOCKETS else {}
        done = await trio.run_process(
            command,
            stdin="".join(f"{key}={value}\n" for key, value in self._client.items()).encode(),
            stdout=subprocess.DEVNULL,
            check=False,
            deliver_cancel=stop,
            **OWN_SESSION,
            **passed,
        )
        return done.returncode

    def close(self) -> None:
        """Free the port."""
        self._listener.close()


class Wish:
    """A command that `dev` can start next to itself: what it needs, and with which options it runs."""

    def __init__(self, name: str, packages: Sequence[str], *options: str) -> None:
        self.name = name
        self.packages = tuple(packages)
        self.options = options

    def prepare(self, port: int, client: Mapping[str, str]) -> Child:
        """It, at a port of loopback, 0 for a free one. Ends the process where it cannot be."""
        missing = next((name for name in self.packages if find_spec(name) is None), None)
        if missing is not None:
            fail(
                f"--{self.name} needs {missing}, which is not installed",
                f"pip install 'kpybroker[{self.name}]', or leave --{self.name} out",
                EXIT_CONFIG,
            )
        try:
            return Child(self.name, self.options, listening(HOST, port), client)
        except OSError as error:
            fail(
                f"the {self.name} cannot listen on {HOST}:{port}: {error.strerror or error}",
                f"choose another port: --{self.name} PORT, 0 for a free one",
                EXIT_PORT,
            )


class Children:
    """Those that were asked for, by name, and how they are started."""

    def __init__(self, console: Child | None = None, registry: Child | None = None) -> None:
        self._console = console
        self._registry = registry

    @property
    def console(self) -> str | None:
        """Where the console is."""
        return None if self._console is None else self._console.url

    @property
    def registry(self) -> str | None:
        """Where the registry is."""
        return None if self._registry is None else self._registry.url

    def start(self, nursery: Any, bootstrap: str, control: str | None) -> None:
        """Start them in a nursery of trio, for brokers at `bootstrap` and their control channel."""
        if self._registry is not None:
            nursery.start_soon(self._registry.run, bootstrap)
        if self._console is not None:
            more = [] if control is None else ["--control", control]
            more += [] if self._registry is None else ["--schema-registry", self._registry.url.rstrip("/")]
            nursery.start_soon(self._console.run, bootstrap, more)
