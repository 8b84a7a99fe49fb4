"""`kpybroker dev`: a broker for a developer, or a few, with nothing to configure and nothing else to run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from kpybroker.cli import run
from kpybroker.cli.logs import set_up_logging
from kpybroker.cli.options import parse_overrides, python_level

DEFAULTS = {
    "broker.id": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""What Kafka's own quickstart file sets for a single broker."""


def run_dev(
    port: int,
    host: str,
    data_dir: str | None,
    ephemeral: bool,
    overrides: Sequence[str],
    log_format: str,
    log_level: str | None,
    brokers: int = 1,
) -> int:
    given = parse_overrides(overrides)
    if ephemeral and (data_dir is not None or "log.dirs" in given):
        run.fail(
            "--ephemeral keeps nothing, yet a data directory is named", "leave one of the two out", run.EXIT_CONFIG
        )
    set_up_logging(log_format, python_level(log_level or "INFO"), quiet=log_level is None)
    if ephemeral:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="kpybroker-", ignore_cleanup_errors=True) as directory:
            return _run(port, host, directory, given, brokers, ephemeral=True)
    if data_dir is None:
        # One that was started alone stays alone: a cluster's files are elsewhere.
        data_dir = default_data_dir(os.environ) + ("-cluster" if brokers > 1 else "")
    return _run(port, host, data_dir, given, brokers, ephemeral=False)


def _run(port: int, host: str, data_dir: str, given: Mapping[str, str], brokers: int, *, ephemeral: bool) -> int:
    if brokers > 1:
        return _run_cluster(port, host, data_dir, given, brokers, ephemeral=ephemeral)
    props = {**DEFAULTS, "listeners": listener(host, port), "log.dirs": data_dir, **given}
    return run.run(run.plan(props, "from the command line", ephemeral=ephemeral))


def _run_cluster(
    port: int, host: str, data_dir: str, given: Mapping[str, str], brokers: int, *, ephemeral: bool
) -> int:
    from kpybroker.cli import dev_cluster

    props = {**DEFAULTS, **dev_cluster.defaults(brokers), **given}
    plans = dev_cluster.plans(props, host, port, data_dir, brokers, ephemeral=ephemeral)
    return run.run(plans[0], partial(dev_cluster.serve, plans, data_dir))


def listener(host: str, port: int) -> str:
    return f"PLAINTEXT://[{host}]:{port}" if ":" in host else f"PLAINTEXT://{host}:{port}"


def default_data_dir(environment: Mapping[str, str]) -> str:
    """Where the platform keeps a user's data: durable, and the same whatever directory one starts in."""
    home = Path.home()
    if sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        base = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    return str(base / "kpybroker")
