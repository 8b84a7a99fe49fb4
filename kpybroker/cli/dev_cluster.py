"""`kpybroker dev --brokers N`: a cluster for development, all of it in this process.

Each broker has its log directory, its port and its registration, as in any cluster, and they replicate to each other
over loopback. They share one embedded tree, in a file next to their directories, and one event loop: such a cluster
says nothing about speed, or about machines that fail one by one. With `--processes` each broker has a process of its
own, on the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.broker.lifecycle.open_tree import EMBEDDED_TREE_FILE
from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG, fail
from kpybroker.cli.options import DevOptions, listener, python_level
from kpybroker.cli.processes.derive import own_log_directory
from kpybroker.system.private_files import make_private_directory

if TYPE_CHECKING:
    from kpybroker.cli.processes.supervisor import Family

SINGLE_BROKER_FILE = "meta.properties"
PORT_MAX = 65535
METRICS_PORT = "kpybroker.metrics.port"

KEYS_OF_ONE_BROKER = ("broker.id", "node.id", "listeners", "advertised.listeners", "log.dirs", "log.dir")
"""Each broker of the cluster has its own value."""


def check(options: DevOptions, given: Mapping[str, str], data_dir: str) -> None:
    """End the process for options that such a cluster cannot have."""
    last = options.port + options.brokers - 1
    if options.port and last > PORT_MAX:
        fail(
            f"--brokers {options.brokers} takes the ports {options.port} to {last}, and the last port is {PORT_MAX}",
            f"choose a --port up to {PORT_MAX + 1 - options.brokers}, or 0 for any free ones",
            EXIT_CONFIG,
        )
    for key in KEYS_OF_ONE_BROKER:
        if key in given:
            fail(
                f"--override {key} is for one broker, but --brokers {options.brokers} gives each its own",
                f"leave out --override {key} or --brokers; --host, --port and --data-dir are for the whole cluster",
                EXIT_CONFIG,
            )
    if given.get("zookeeper.connect"):
        fail(
            f"--brokers {options.brokers} has its coordination embedded, yet zookeeper.connect is set",
            "leave one of the two out; with ZooKeeper, start each broker by kpybroker server",
            EXIT_CONFIG,
        )
    kept = len(list(Path(data_dir).glob("broker-*/meta.properties")))
    if kept > options.brokers:
        run.server_log.warning(
            "%s holds the data of %d brokers, and --brokers %d starts only the first ones: replicas of the others are "
            "offline",
            data_dir,
            kept,
            options.brokers,
        )
    if (Path(data_dir) / SINGLE_BROKER_FILE).exists():
        fail(
            f"{data_dir} holds the data of a single broker",
            "give the cluster a directory of its own with --data-dir, or leave --brokers out",
            EXIT_CONFIG,
        )


def plans(
    props: Mapping[str, str], options: DevOptions, data_dir: str, temporary: str | None = None
) -> list[run.BrokerToRun]:
    """One plan for each broker: ids from 0, ports from `port` (0: any free ones), directories below `data_dir`.

    The ports of metrics count up from the given one as well.
    """
    make_private_directory(data_dir)
    wanted = []
    protocol = options.security.protocol
    for broker_id in range(options.brokers):
        own = {
            "broker.id": str(broker_id),
            "listeners": listener(options.host, options.port + broker_id if options.port else 0, protocol),
            "log.dirs": str(Path(data_dir) / f"broker-{broker_id}"),
        }
        metrics_port = props.get(METRICS_PORT, "")
        if metrics_port.isdecimal() and int(metrics_port):
            own[METRICS_PORT] = str(int(metrics_port) + broker_id)
        wanted.append(run.plan({**props, **own}, "from the command line", temporary))
    return wanted


def family(plans: Sequence[run.BrokerToRun], options: DevOptions, data_dir: str, extras: run.Extras) -> Family:
    """The brokers of these plans as processes. Their tree is where it is without `--processes`."""
    from kpybroker.cli.processes.supervisor import Family

    members = []
    for number, one in enumerate(plans):
        static = one.config.static
        members.append({**static, **own_log_directory(static, number, number)})
    return Family(
        members,
        options.log_format,
        python_level(options.log_level or "INFO"),
        quiet=options.log_level is None,
        tree_file=Path(data_dir) / EMBEDDED_TREE_FILE,
        temporary=plans[0].temporary,
        exit_with=extras.exit_with,
        clients=extras.clients,
        children=extras.children,
    )
