"""`kpybroker dev`: one broker for development, or a few, with nothing to configure and nothing else to run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG
from kpybroker.cli.logs import set_up_logging
from kpybroker.cli.options import DevOptions, listener, parse_overrides, python_level

DEFAULTS = {
    "broker.id": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Keys as in Kafka's quickstart file for a single broker."""


def run_dev(options: DevOptions) -> int:
    """Run the broker, or the cluster, until it is stopped; the exit code."""
    given = parse_overrides(options.overrides)
    if options.ephemeral and (options.data_dir is not None or "log.dirs" in given):
        run.fail("--ephemeral keeps nothing, yet a data directory is named", "leave one of the two out", EXIT_CONFIG)
    set_up_logging(options.log_format, python_level(options.log_level or "INFO"), quiet=options.log_level is None)
    if options.ephemeral:
        import tempfile

        if options.ephemeral_dir is not None:
            import shutil

            try:
                return _run(options, str(Path(options.ephemeral_dir) / "data"), given)
            finally:
                shutil.rmtree(options.ephemeral_dir, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="kpybroker-", ignore_cleanup_errors=True) as directory:
            return _run(options, str(Path(directory) / "data"), given)
    data_dir = options.data_dir
    if data_dir is None:
        # A cluster's files are kept apart from those of a single broker.
        data_dir = default_data_dir(os.environ) + ("-cluster" if options.brokers > 1 else "")
    return _run(options, data_dir, given)


def _run(options: DevOptions, data_dir: str, given: Mapping[str, str]) -> int:
    if options.brokers > 1:
        from kpybroker.cli import dev_cluster

        plans = dev_cluster.plans({**DEFAULTS, **dev_cluster.defaults(options.brokers), **given}, options, data_dir)
        return run.run(plans, data_dir, options.control, options.exit_with)
    props = {**DEFAULTS, "listeners": listener(options.host, options.port), "log.dirs": data_dir, **given}
    plan = run.plan(props, "from the command line", ephemeral=options.ephemeral)
    return run.run([plan], f"{data_dir}-more", options.control, options.exit_with)


def default_data_dir(environment: Mapping[str, str]) -> str:
    """Where the platform keeps a user's data: durable, and independent of the working directory."""
    home = Path.home()
    if sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        base = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    return str(base / "kpybroker")
