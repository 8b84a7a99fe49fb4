"""Runs an instance until it is stopped: reads the topic to its end, joins the group, then serves with uvicorn."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
import sys
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

import uvicorn
from starlette.middleware import Middleware

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.connect.listening import bound
from kpybroker.http.doors import ANY_NAME, ANYWHERE, Door, names_of
from kpybroker.http.server import Limits
from kpybroker.http.slow_clients import HEAD_BYTES_MAX, protocol
from kpybroker.registry.api.app import LOOPBACK_DOOR, make_app
from kpybroker.registry.api.forward import Forwarder
from kpybroker.registry.api.logins import Login
from kpybroker.registry.election.member import Member
from kpybroker.registry.election.protocol import Identity
from kpybroker.registry.options import LOOPBACK, RegistryOptions
from kpybroker.registry.service import Service
from kpybroker.registry.store.log import TopicLog
from kpybroker.registry.texts.desk import Desk
from kpybroker.system.processes import one_heap_for_all_threads

STOP_S_MAX: Final = 2
"""Of requests in progress; uvicorn waits as long for idle connections with TLS."""
LIMITS: Final = Limits(connections=512)


def serve(options: RegistryOptions, descriptor: int | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit code. Raises CommandError where it cannot begin.

    `descriptor` is of a socket that listens already, from a broker that starts this registry next to itself.
    """
    check(options)
    one_heap_for_all_threads()
    with bound(options.host, options.port) if descriptor is None else socket.socket(fileno=descriptor) as listener:
        desk = Desk()
        with closing(desk):
            desk.start()
            _serve(options, listener, desk)
    return 0


def _serve(options: RegistryOptions, listener: socket.socket, desk: Desk) -> None:
    cluster_id = str(Cluster(options.settings).metadata().cluster_id)
    service = Service(lambda: cluster_id, desk)
    log = TopicLog(options.settings, options.topic, service.apply, service.lock)
    member = Member(options.settings, options.group, identity(options, listener.getsockname()[1]))
    service.attach(log, member)
    log.start()
    member.start()
    if options.is_eligible and not member.wait_for_leader(options.settings.timeout_s):
        raise CommandError(f"no leader was elected in the group {options.group}", "the log says why; see --group")
    try:
        _run(options, service, listener)
    finally:
        member.close()
        log.close()


def _run(options: RegistryOptions, service: Service, listener: socket.socket) -> None:
    middleware = [] if options.users is None else [Middleware(Login, users=options.users)]
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        make_app(service, Forwarder(options.ca_file), door_of(options, port), middleware),
        http=protocol(LIMITS, "The registry's port", logging.getLogger("kpybroker.registry")),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies),
        timeout_graceful_shutdown=STOP_S_MAX,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        ssl_certfile=options.cert_file,
        ssl_keyfile=options.key_file,
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    name = f"[{host}]" if ":" in host else host
    server = uvicorn.Server(config)

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    # uvicorn sends itself the signal again once it has stopped: then the group is still to be left
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    sys.stdout.write(f"kpybroker registry ready at {scheme(options)}://{name}:{port}/\n")
    sys.stdout.flush()
    server.run(sockets=[listener])


def door_of(options: RegistryOptions, port: int) -> Door:
    """What is let in. Where all clients log in, a page that has its name resolved to ours has no login to misuse."""
    is_any = options.users is not None and options.host in ANYWHERE and not options.hosts
    names = (identity(options, port).host, *options.hosts, *((ANY_NAME,) if is_any else ()))
    return LOOPBACK_DOOR._replace(names=names_of(options.host, socket.gethostname(), names))


def scheme(options: RegistryOptions) -> str:
    """http or https."""
    return "http" if options.cert_file is None else "https"


def identity(options: RegistryOptions, port: int) -> Identity:
    """Where other instances reach this one."""
    if options.advertised_url is None:
        host = socket.gethostname() if options.host in ANYWHERE else options.host
        return Identity(scheme(options), host, port, options.is_eligible)
    try:
        parts = urlsplit(options.advertised_url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) > 0
    except ValueError:
        is_good = False
    if not is_good:
        raise usage("--advertised-url is no address", "write http://HOST:PORT, or https://HOST:PORT")
    assert parts.hostname is not None
    return Identity(parts.scheme, parts.hostname, parts.port or 0, options.is_eligible)


def check(options: RegistryOptions) -> None:
    """Raises CommandError for options that cannot be, or would leave schemas open to a network."""
    if options.host not in LOOPBACK and options.users is None and not options.is_open:
        raise usage(
            f"--host {options.host} would let others change schemas without a login",
            "add --users-file FILE, or --no-login where the network is trusted",
        )
    if (options.cert_file is None) != (options.key_file is None):
        raise usage("TLS needs a certificate and its key", "give both --cert-file and --key-file")
    identity(options, options.port or 1)
    _check_files(options)


def _check_files(options: RegistryOptions) -> None:
    try:
        if options.cert_file is not None:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                options.cert_file, options.key_file, password=lambda: ""
            )
    except (OSError, ssl.SSLError, ValueError) as error:
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or "it cannot be used"
        raise usage(
            f"{options.cert_file} with {options.key_file}: {why}",
            "name a certificate and its key, without a password, in PEM",
        ) from None
    try:
        if options.ca_file is not None:
            ssl.create_default_context(cafile=options.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise usage(f"{options.ca_file}: {error.strerror or error}", "name certificates in PEM: --ca-file") from None
