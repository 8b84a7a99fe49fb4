"""Runs the console until it is stopped: uvicorn on a socket that is bound here, so that a taken port is two lines.

uvicorn rather than hypercorn: confluent-kafka's calls block, so queries run in threads on any event loop, and uvicorn
needs click and h11 only, which kpybroker has already.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Sequence
from typing import Final

import uvicorn

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import usage
from kpybroker.client.connect.listening import bound
from kpybroker.console.app import make_app
from kpybroker.console.options import LOOPBACK, ConsoleOptions
from kpybroker.http.server import Limits
from kpybroker.http.slow_clients import HEAD_BYTES_MAX, protocol
from kpybroker.system.processes import one_heap_for_all_threads

logger = logging.getLogger("kpybroker.console")

LIMITS: Final = Limits(connections=512)
START_S_MAX: Final = 5.0
STOP_S_MAX: Final = 2


def serve(options: ConsoleOptions, descriptor: int | None = None, clusters: Sequence[ConsoleOptions] = ()) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit code. Raises CommandError where it cannot begin.

    `descriptor` is of a socket that listens already, from a broker that starts this console next to itself. `clusters`
    are those of a console of several, which begins also where some of them are away.
    """
    check(options)
    one_heap_for_all_threads()
    with bound(options.host, options.port) if descriptor is None else socket.socket(fileno=descriptor) as listener:
        if descriptor is None and not clusters:
            Cluster(options.settings._replace(timeout_s=min(options.settings.timeout_s, START_S_MAX))).metadata()
        host, port = listener.getsockname()[:2]
        config = uvicorn.Config(
            make_app(options, clusters=clusters),
            http=protocol(LIMITS, "The console's port", logger),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,  # `Guard` decides whose count
            timeout_graceful_shutdown=STOP_S_MAX,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        logging.getLogger("kpybroker.console.changes").setLevel(logging.INFO)
        name = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"kpybroker console ready at http://{name}:{port}/\n")
        sys.stdout.flush()
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def check(options: ConsoleOptions) -> None:
    """Raises CommandError for options that would leave messages open to a network."""
    if options.host not in LOOPBACK and not options.has_login:
        raise usage(
            f"--host {options.host} would serve the console to others without a login",
            "add --password-file FILE, or --user-header NAME behind a proxy that logs users in",
        )
