"""Keys from the `KAFKA_*` environment variables of the container images.

The mapping is that of the `apache/kafka` image: without the prefix, in lower case, `___` is `-`, `__` is `_`, and `_`
is `.` (`KAFKA_LOG_RETENTION_HOURS` -> `log.retention.hours`). Variables for a JVM or for the scripts of the image have
no effect and are returned separately, to be reported. From KAFKA_OPTS only the JAAS login file is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PREFIX: Final = "KAFKA_"

_NOT_KEYS: Final = frozenset(
    {
        "KAFKA_CLUSTERS_FILE",
        "KAFKA_DEBUG",
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
_JAAS_FILE: Final = re.compile(r"""-Djava\.security\.auth\.login\.config==?(?:["']([^"']*)["']|(\S+))""")
_NOT_KEY_PREFIXES: Final = ("KAFKA_JVM_", "KAFKA_LOG4J", "KAFKA_GC_")


def keys_from_environment(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """(keys with their values, variables that have no effect), both in alphabetical order."""
    keys: dict[str, str] = {}
    without_effect: list[str] = []
    for variable in sorted(environment):
        if not variable.startswith(_PREFIX) or variable == _PREFIX:
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
    return keys, without_effect


def listeners_of(advertised: str) -> str:
    """Listeners at the ports that are advertised, on every address: what Confluent's images set where only
    KAFKA_ADVERTISED_LISTENERS is.
    """
    made = []
    for uri in advertised.split(","):
        name, separator, rest = uri.strip().partition("://")
        made.append(f"{name}{separator}:{rest.rpartition(':')[2]}" if separator else uri.strip())
    return ",".join(made)


def key_of(variable: str) -> str:
    """The key that a variable names; the prefix is `KAFKA_`, or `KAFKA_CFG_` in some images."""
    dotted = variable.removeprefix(_PREFIX).removeprefix("CFG_").lower().replace("_", ".")
    return dotted.replace("...", "-").replace("..", "_")
