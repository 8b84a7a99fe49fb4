"""The properties of N brokers from those of one.

The first broker is exactly the one that the properties describe, so that it keeps its id, its address and its data when
others are added. For each further one the id and every port count up by one (0 stays 0: any free port), and each
directory gets the broker's id: `/data/kafka` becomes `/data/kafka-1`, and `/data/broker-0`, which ends in the id of the
first one, `/data/broker-1`. Everything else is the same for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.keys.own import NEW_CLUSTER_FEATURES
from kpybroker.config.listeners import Endpoint

PORT_MAX: Final = 65535
METRICS_PORT: Final = "kpybroker.metrics.port"
GRAPHITE: Final = "kafka.graphite.metrics.reporter.enabled"
GRAPHITE_GROUP: Final = "kafka.graphite.metrics.group"
TREE_HOST: Final = "kpybroker.zookeeper.host"
TREE_PORT: Final = "kpybroker.zookeeper.port"
LOG_DIRECTORY: Final = "kpybroker.log.dir"

_EVERYWHERE: Final = ("", "0.0.0.0", "::")
_OF_A_CLIENT: Final = ("zookeeper.ssl.", "zookeeper.clientCnxnSocket", "zookeeper.set.acl")
"""Keys about a ZooKeeper elsewhere: none of them is for the tree of the first broker."""


class NotDerivable(Exception):
    """The properties of one broker cannot be those of several; `fix` says what to change."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.fix = fix


class Taken(NamedTuple):
    """A port that a broker binds."""

    broker_id: int
    what: str
    host: str
    port: int


def derive(props: Mapping[str, str], count: int, stored_id: int | None = None) -> list[dict[str, str]]:
    """The static properties of `count` brokers. Raises NotDerivable.

    `props` are checked (`interpret`); `stored_id` is the broker id in the log directories, if they have one.
    """
    config = BrokerConfig(props)
    first_id = _first_id(config, stored_id)
    made = [_broker(config, first_id, number) | _reserved(config, first_id + count) for number in range(count)]
    _check_ports([BrokerConfig(one) for one in made])
    _check_directories([BrokerConfig(one) for one in made])
    return made


def own_log_directory(props: Mapping[str, str], number: int, broker_id: int) -> dict[str, str]:
    """The key of the directory of its log files, if there is one: the first broker keeps it, others have one in it."""
    directory = props.get(LOG_DIRECTORY)
    return {LOG_DIRECTORY: str(Path(directory) / f"broker-{broker_id}")} if directory and number else {}


def connected(props: Mapping[str, str], address: str) -> dict[str, str]:
    """The properties of a broker whose tree another one serves at `address`; that is an embedded one for it as well."""
    kept = {key: value for key, value in _without_client(props).items() if key != TREE_PORT}
    return {NEW_CLUSTER_FEATURES: "newest", **kept, "zookeeper.connect": address}


def serving(props: Mapping[str, str], host: str, port: int) -> dict[str, str]:
    """The properties of the broker that serves its tree there."""
    return {**_without_client(props), TREE_HOST: host, TREE_PORT: str(port)}


def _without_client(props: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in props.items() if not key.startswith(_OF_A_CLIENT)}


def _first_id(config: BrokerConfig, stored_id: int | None) -> int:
    given = config.get_int("broker.id")
    if given >= 0:
        return given
    if stored_id is not None:
        return stored_id
    if config.get_str("zookeeper.connect"):
        raise NotDerivable(
            "the brokers of --processes count up from broker.id, which is not set",
            "set broker.id to an id from which on so many are free in the cluster",
        )
    return 0


def _reserved(config: BrokerConfig, end: int) -> dict[str, str]:
    """Ids that are set are those below the generated ones, where the first is not one of these itself."""
    key = "reserved.broker.max.id"
    return {key: str(end)} if end > config.get_int(key) else {}


def _broker(config: BrokerConfig, first_id: int, number: int) -> dict[str, str]:
    broker_id = first_id + number
    own = {key: value for key, value in config.static.items() if key not in ("log.dir", "node.id")}
    own["broker.id"] = own["node.id"] = str(broker_id)
    if not number:
        return own
    own["log.dirs"] = ",".join(_directory(path, first_id, broker_id) for path in config.log_dirs)
    own["listeners"] = _moved("listeners", config.listeners, number)
    if config.advertised_listeners:
        own["advertised.listeners"] = _moved("advertised.listeners", config.advertised_listeners, number)
    if config.get_bool(GRAPHITE):
        own[GRAPHITE_GROUP] = f"{config.get_str(GRAPHITE_GROUP)}-{broker_id}"
    if metrics_port := config.get_optional_int(METRICS_PORT):
        own[METRICS_PORT] = str(_port(METRICS_PORT, metrics_port, number))
    return own | own_log_directory(own, number, broker_id)


def _directory(path: str, first_id: int, broker_id: int) -> str:
    trimmed = path.rstrip("/") or path
    if os.path.ismount(trimmed):
        raise NotDerivable(
            f"{path} is a mount point: the directories of the other brokers, next to it, would be elsewhere",
            f"name a directory in it, such as log.dirs={trimmed.rstrip('/')}/broker-{first_id}; data that are there "
            "move into it",
        )
    return f"{trimmed.removesuffix(f'-{first_id}')}-{broker_id}"


def _moved(key: str, endpoints: Iterable[Endpoint], number: int) -> str:
    return ",".join(str(one._replace(port=_port(key, one.port, number))) for one in endpoints)


def _port(key: str, port: int, number: int) -> int:
    if port and port + number > PORT_MAX:
        raise NotDerivable(
            f"{key} has the port {port}, and the last broker would have {port + number}: the last port is {PORT_MAX}",
            f"choose a port up to {PORT_MAX - number}, or 0 for any free ones",
        )
    return port + number if port else 0


def _ports(config: BrokerConfig, number: int) -> Iterator[Taken]:
    broker_id = config.get_int("broker.id")
    for one in config.listeners:
        yield Taken(broker_id, one.listener_name, one.host, one.port)
    yield Taken(
        broker_id, METRICS_PORT, config.get_str("kpybroker.metrics.host"), config.get_optional_int(METRICS_PORT) or 0
    )
    if not number:
        yield Taken(broker_id, TREE_PORT, config.get_str(TREE_HOST), config.get_optional_int(TREE_PORT) or 0)


def _check_ports(configs: list[BrokerConfig]) -> None:
    taken = [one for number, config in enumerate(configs) for one in _ports(config, number) if one.port]
    for one, other in combinations(taken, 2):
        if one.broker_id != other.broker_id and one.port == other.port and _is_one_place(one.host, other.host):
            raise NotDerivable(
                f"ports count up from broker to broker, so {other.what} of broker {other.broker_id} would be at port "
                f"{other.port}, as {one.what} of broker {one.broker_id}",
                f"leave {len(configs) - 1} or more ports free after each port in the configuration",
            )


def _is_one_place(host: str, other: str) -> bool:
    return host == other or host in _EVERYWHERE or other in _EVERYWHERE


def _check_directories(configs: list[BrokerConfig]) -> None:
    of: dict[str, int] = {}
    for config in configs:
        broker_id = config.get_int("broker.id")
        for path in config.log_dirs:
            if of.setdefault(path, broker_id) != broker_id:
                raise NotDerivable(
                    f"log.dirs of broker {of[path]} and of broker {broker_id} would both have {path}",
                    "name directories whose names do not end in numbers that follow each other",
                )
