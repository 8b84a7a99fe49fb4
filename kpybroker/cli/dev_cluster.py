"""`kpybroker dev --brokers N`: a cluster for development, all of it in this process.

Each broker has its log directory, its port and its registration, as in any cluster, and they replicate to each other
over loopback. They share one embedded tree, in a file next to their directories, and one event loop: such a cluster
says nothing about speed, or about machines that fail one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG
from kpybroker.cli.options import DevOptions, listener

SINGLE_BROKER_FILE = "meta.properties"


def defaults(count: int) -> dict[str, str]:
    """Keys that depend on the number of brokers, to be added to `dev.DEFAULTS`."""
    factor = str(min(count, 3))
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": str(min(count, 2)),
    }


def plans(props: Mapping[str, str], options: DevOptions, data_dir: str) -> list[run.Plan]:
    """One plan for each broker: ids from 0, ports from `port` (0: any free ones), directories below `data_dir`."""
    if (Path(data_dir) / SINGLE_BROKER_FILE).exists():
        run.fail(
            f"{data_dir} holds the data of a single broker",
            "give the cluster a directory of its own with --data-dir, or leave --brokers out",
            EXIT_CONFIG,
        )
    Path(data_dir).mkdir(parents=True, exist_ok=True)
    wanted = []
    for broker_id in range(options.brokers):
        own = {
            "broker.id": str(broker_id),
            "listeners": listener(options.host, options.port + broker_id if options.port else 0),
            "log.dirs": str(Path(data_dir) / f"broker-{broker_id}"),
        }
        wanted.append(run.plan({**props, **own}, "from the command line", ephemeral=options.ephemeral))
    return wanted
