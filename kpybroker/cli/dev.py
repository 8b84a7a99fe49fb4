"""`kpybroker dev`: one broker for development, or a few, with nothing to configure and nothing else to run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.broker.lifecycle.errors import EXIT_STORAGE
from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG, fail
from kpybroker.cli.log_set_up import set_up_logging
from kpybroker.cli.options import DevOptions, listener, parse_overrides, python_level
from kpybroker.config.development import development_defaults
from kpybroker.config.keys.own import KAFKA_VERSION
from kpybroker.control.development.security import (
    ADMIN,
    NoCertificates,
    SecurityOptions,
    broker_keys,
    tls_directory,
    tls_files,
)
from kpybroker.control.process.ephemeral import ephemeral_directory
from kpybroker.system.user_directories import data_directory

if TYPE_CHECKING:
    from kpybroker.cli.children.child import Children
    from kpybroker.control.development.certificates import TlsFiles

DIRECTORY_KEYS = ("log.dirs", "log.dir")


def run_dev(options: DevOptions) -> int:
    """Run the broker, or the cluster, until it is stopped; the exit code."""
    set_up_logging(options.log_format, python_level(options.log_level or "INFO"), quiet=options.log_level is None)
    given = parse_overrides(options.overrides)
    _check_directories(options, given)
    _check_processes(options)
    if options.ephemeral:
        run.end_on_sigterm()
        with ExitStack() as stack:
            try:
                directory = stack.enter_context(ephemeral_directory(options.ephemeral_dir))
            except OSError as error:
                fail(
                    f"there is no directory for --ephemeral: {error}",
                    "set TMPDIR to a directory that can be written to",
                    EXIT_STORAGE,
                )
            return _run(options, str(Path(directory) / "data"), given, directory)
    data_dir = options.data_dir
    if data_dir is None:
        # A cluster's files are kept apart from those of a single broker.
        data_dir = str(data_directory(os.environ)) + ("-cluster" if options.brokers > 1 else "")
    return _run(options, data_dir, given)


def _check_directories(options: DevOptions, given: Mapping[str, str]) -> None:
    """End the process where two of the options say where data are kept, or one says it badly."""
    if options.data_dir is not None and (not options.data_dir.strip() or "," in options.data_dir):
        fail(
            f"--data-dir '{options.data_dir}' is not one directory",
            "name one, without a comma in it; several are --override log.dirs=A,B",
            EXIT_CONFIG,
        )
    overridden = next((f"--override {key}" for key in DIRECTORY_KEYS if key in given), None)
    named = "--data-dir" if options.data_dir is not None else overridden
    if options.ephemeral and named is not None:
        fail(f"--ephemeral keeps nothing, yet {named} names a data directory", "leave one of the two out", EXIT_CONFIG)
    if options.data_dir is not None and overridden is not None:
        fail(f"--data-dir and {overridden} both name a data directory", "leave one of the two out", EXIT_CONFIG)


def _check_processes(options: DevOptions) -> None:
    """End the process for options that `--processes` cannot have."""
    if not options.processes:
        return
    if options.brokers == 1:
        fail(
            "--processes is for several brokers, and there is one", "add --brokers 2, or as many as cores", EXIT_CONFIG
        )
    if options.control is not None:
        fail(
            "--control is for brokers in one process, yet --processes gives each its own",
            "leave one of the two out: without --processes the channel has faults, the clock and a look inside",
            EXIT_CONFIG,
        )


def _run(options: DevOptions, data_dir: str, given: Mapping[str, str], temporary: str | None = None) -> int:
    wanted = options.security
    try:
        tls = tls_files(tls_directory(data_dir, temporary), options.host) if wanted.tls else None
    except NoCertificates as error:
        fail(error.cause, error.fix, EXIT_CONFIG if error.is_missing else EXIT_STORAGE)
    defaults = development_defaults(options.brokers) | broker_keys(wanted, tls)
    if options.zookeeper_port is not None:
        defaults["kpybroker.zookeeper.port"] = str(options.zookeeper_port)
    if options.kafka_version is not None:
        defaults[KAFKA_VERSION] = options.kafka_version
    children, control = _children(options, tls), options.control
    if options.console is not None:
        control = 0 if control is None and not options.processes else control
        defaults["kpybroker.metrics.port"] = "0"
    show = None
    if wanted.protocol != "PLAINTEXT":
        from kpybroker.cli.dev_security import client_lines

        show = partial(client_lines, wanted=wanted, tls=tls)
    extras = run.Extras(f"{data_dir}-more", control, options.exit_with, show, children)
    if options.brokers > 1:
        from kpybroker.cli import dev_cluster

        dev_cluster.check(options, given, data_dir)
        plans = dev_cluster.plans({**defaults, **given}, options, data_dir, temporary)
        if options.processes:
            from kpybroker.cli.processes.supervisor import supervise

            run.log_notes(plans[0])
            return supervise(dev_cluster.family(plans, options, data_dir, extras))
        return run.run(plans, extras._replace(directory=data_dir))
    if "node.id" in given:
        del defaults["broker.id"]  # another name of the same value
    if not any(key in given for key in DIRECTORY_KEYS):
        _check_no_cluster(data_dir)
        defaults["log.dirs"] = data_dir
    props = {**defaults, "listeners": listener(options.host, options.port, wanted.protocol), **given}
    plan = run.plan(props, "from the command line", temporary)
    return run.run([plan], extras)


def _children(options: DevOptions, tls: TlsFiles | None) -> Children | None:
    """A console and a registry that may do everything. Ends the process where one cannot be."""
    if options.console is None and options.registry is None:
        return None
    from kpybroker.cli.children.child import Children
    from kpybroker.cli.children.wishes import CONSOLE, REGISTRY

    client = _login(options.security, tls)
    return Children(
        None if options.console is None else CONSOLE.prepare(options.console, client),
        None if options.registry is None else REGISTRY.prepare(options.registry, client),
    )


def _login(wanted: SecurityOptions, tls: TlsFiles | None) -> Mapping[str, str]:
    if wanted.protocol == "PLAINTEXT":
        return {}
    from kpybroker.control.development import logins

    return logins.librdkafka(logins.Login(wanted, ADMIN, tls))


def _check_no_cluster(data_dir: str) -> None:
    """End the process where `dev --brokers` keeps its data."""
    if (Path(data_dir) / "broker-0" / "meta.properties").exists():
        fail(
            f"{data_dir} holds the data of a cluster",
            "start it with --brokers, or give a single broker a directory of its own with --data-dir",
            EXIT_CONFIG,
        )
