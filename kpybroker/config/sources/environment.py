"""Keys from the `KAFKA_*` environment variables of the container images.

The mapping is that of the `apache/kafka` image: without the prefix, in lower case, `___` is `-`, `__` is `_`, and `_`
is `.` (`KAFKA_LOG_RETENTION_HOURS` -> `log.retention.hours`). Variables for a JVM or for the scripts of the image have
no effect and are returned separately, to be reported. From KAFKA_OPTS only the JAAS login file is used.

Two things are as in other images: `KAFKA_CFG_` is a prefix too (`bitnami/kafka`), and `listeners_behind` gives the
listeners of a container that names only the advertised ones (`confluentinc/cp-kafka`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kpybroker.config.keys.own import NEW_CLUSTER_ID

_PREFIX: Final = "KAFKA_"
IMAGE_LISTENERS: Final = "KPYBROKER_DEFAULT_LISTENERS"
"""Variable of our image: what a container listens on where nothing says more."""

_NOT_KEYS: Final = frozenset(
    {
        "KAFKA_CLUSTERS_FILE",
        "KAFKA_DEBUG",
        "KAFKA_ENABLE_KRAFT",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
_CLUSTER_ID_VARIABLES: Final = ("CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CFG_CLUSTER_ID")
_JAAS_FILE: Final = re.compile(r"""-Djava\.security\.auth\.login\.config==?(?:["']([^"']*)["']|(\S+))""")
_HOST_OF_URI: Final = re.compile(r"^([^:/]*)://.*:([0-9]+)$")
_NOT_KEY_PREFIXES: Final = ("KAFKA_JVM_", "KAFKA_LOG4J", "KAFKA_GC_")


def keys_from_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """(keys with their values, variables that have no effect), both in alphabetical order."""
    keys: dict[str, str] = {}
    without_effect: list[str] = []
    for variable in sorted(environment):
        if not variable.startswith(_PREFIX) or variable == _PREFIX or variable in _CLUSTER_ID_VARIABLES:
            continue
        if variable in _NOT_KEYS or variable.startswith(_NOT_KEY_PREFIXES):
            without_effect.append(variable)
            jaas_file = _JAAS_FILE.search(environment[variable]) if variable == "KAFKA_OPTS" else None
            if jaas_file is not None:
                keys["kpybroker.jaas.config.file"] = jaas_file[1] or jaas_file[2]
                if jaas_file[0] == environment[variable].strip():
                    without_effect.pop()
        else:
            keys[key_of(variable)] = environment[variable].strip()
    cluster_ids = [environment[name].strip() for name in _CLUSTER_ID_VARIABLES if environment.get(name, "").strip()]
    if keys and cluster_ids:  # CLUSTER_ID alone may be meant for another program
        keys[NEW_CLUSTER_ID] = cluster_ids[0]
    return keys, without_effect


def default_listeners(environment: Mapping[str, str], advertised: str | None) -> str | None:
    """`listeners` where nothing sets them: as advertised by a variable, or as the image says; None without either."""
    return listeners_behind(advertised) if advertised else environment.get(IMAGE_LISTENERS)


def listeners_behind(advertised: str) -> str:
    """`listeners` for these `advertised.listeners`: the same names and ports, on all interfaces."""
    return ",".join(_HOST_OF_URI.sub(r"\1://:\2", uri.strip()) for uri in advertised.split(","))


def key_of(variable: str) -> str:
    """The key that a variable names; the prefix is `KAFKA_`, or `KAFKA_CFG_` in some images."""
    dotted = variable.removeprefix(_PREFIX).removeprefix("CFG_").lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")
