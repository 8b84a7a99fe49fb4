"""How brokers are started: as a child process or in a thread, and where their files are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpybroker.testing.errors import UsageError
from kpybroker.testing.running.process import Process, new_directory_name

if TYPE_CHECKING:
    from kpybroker.control.development.security import SecurityOptions
    from kpybroker.testing.running.options import BrokerOptions
    from kpybroker.testing.running.runner import Runner

BROKERS_MAX = 9
PORT_MAX = 65_535
DIRECTORY_KEYS = ("log.dirs", "log.dir")
KEYS_OF_ONE_BROKER = ("broker.id", "node.id", "listeners", "advertised.listeners", *DIRECTORY_KEYS)


class Launch:
    """What `Brokers` were made with, checked. Raises UsageError."""

    def __init__(
        self, brokers: int, keys: Mapping[str, str], options: BrokerOptions, security: SecurityOptions | None = None
    ) -> None:
        if not 1 <= brokers <= BROKERS_MAX:
            raise UsageError(f"{brokers} brokers", f"choose 1 to {BROKERS_MAX}")
        _check_keys(keys)
        _check_together(brokers, keys, options)
        self._brokers = brokers
        self._keys = keys
        self._host = options.host
        self._port = options.port
        self._in_thread = options.in_thread
        self._security = security
        data_dir = options.data_dir
        self._is_kept = options.keep or data_dir is not None
        self.directory = new_directory_name() if data_dir is None else os.path.abspath(os.fspath(data_dir))

    def runner(self) -> Runner:
        """What runs them, not started."""
        if self._in_thread:
            from kpybroker.testing.running.thread import Thread

            address = self._host, self._port
            return Thread(self._brokers, self._keys, address, self.directory, self._is_kept, self._security)
        return self.process()

    @property
    def place(self) -> tuple[str, str | None]:
        """Where the data are, and the directory that goes with the brokers, if any."""
        return (self.directory, None) if self._is_kept else (f"{self.directory}/data", self.directory)

    def process(self, exit_with: int | None = None) -> Process:
        """A child process; with `exit_with` it ends with that process instead of this one."""
        arguments = ["--host", self._host, "--port", str(self._port), "--brokers", str(self._brokers)]
        where = ["--data-dir", self.directory] if self._is_kept else ["--ephemeral", "--ephemeral-dir", self.directory]
        if self._security is not None:
            where += [f"--{name}" for name in ("tls", "acl") if getattr(self._security, name)]
            where += ["--sasl", self._security.sasl] if self._security.sasl is not None else []
        overrides = [part for name, value in self._keys.items() for part in ("--override", f"{name}={value}")]
        return Process([*arguments, *where, *overrides], None if self._is_kept else self.directory, exit_with)


def _check_together(brokers: int, keys: Mapping[str, str], options: BrokerOptions) -> None:
    """What is given twice, or to several brokers at once."""
    for key in KEYS_OF_ONE_BROKER:
        if key in keys and (brokers > 1 or key in DIRECTORY_KEYS):
            fix = "give data_dir=" if key in DIRECTORY_KEYS else "leave it out: host= and port= are for all brokers"
            raise UsageError(f"config={{{key!r}: {keys[key]!r}}}, which each broker has of its own", fix)
    last = options.port + brokers - 1
    if options.port and last > PORT_MAX:
        cause = f"port={options.port} with {brokers} brokers takes the ports up to {last}"
        raise UsageError(cause, f"give a port up to {PORT_MAX + 1 - brokers}, or 0 for any free ones")
    if options.kafka_version is not None and options.group_protocol == "consumer":
        release = options.kafka_version.split(".")[:2]
        if all(one.isdigit() for one in release) and tuple(map(int, release)) < (4, 0):
            cause = f"kafka_version={options.kafka_version!r} with group_protocol='consumer'"
            raise UsageError(cause, "give kafka_version='4.0' or later, or group_protocol='classic'")


def _check_keys(keys: Mapping[str, str]) -> None:
    """A key that Kafka does not know is a mistake in a test. This imports the definitions only if there are keys."""
    if not keys:
        return
    from kpybroker.config.keys.registry import BROKER_KEYS
    from kpybroker.config.keys.synonyms import base_key
    from kpybroker.config.unserved import AUTHORIZER_KEYS

    for name in keys:
        if base_key(name) not in BROKER_KEYS and name not in AUTHORIZER_KEYS:
            import difflib

            near = difflib.get_close_matches(name, BROKER_KEYS, n=1)
            fix = f"did you mean {near[0]!r}?" if near else "see the reference of settings"
            raise UsageError(f"{name!r} is no key of Kafka's brokers", fix)
