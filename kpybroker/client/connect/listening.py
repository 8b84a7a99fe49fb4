"""The listening socket of a command that serves: `console`, `registry`."""

from __future__ import annotations

import errno
import socket
from typing import Final

from kpybroker.client.connect.errors import CommandError
from kpybroker.system import sockets

EXIT_BIND: Final = 5


def bound(host: str, port: int) -> socket.socket:
    """A listening socket. Raises CommandError with exit code 5."""
    try:
        return sockets.listening(host, port)
    except OSError as error:
        fix = "choose another port: --port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "check --host"
        raise CommandError(f"cannot listen on {host}:{port}: {error.strerror or error}", fix, EXIT_BIND) from None
