"""`kpybroker server FILE`: a stock `server.properties`, the images' environment, and overrides."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG, fail
from kpybroker.cli.health import exposure
from kpybroker.cli.log_set_up import set_up_logging
from kpybroker.cli.options import parse_overrides, python_level
from kpybroker.config.interpret import Note
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.sources.environment import default_listeners, keys_from_environment
from kpybroker.config.sources.properties import UnreadableFile, load_properties

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig


def run_server(
    file: str | None,
    environment: Mapping[str, str],
    overrides: Sequence[str],
    log_format: str,
    log_level: str,
    processes: int = 1,
) -> int:
    """Run a broker from a properties file, the environment and overrides, or so many of them; the exit code."""
    set_up_logging(log_format, python_level(log_level), quiet=False)
    given = parse_overrides(overrides)
    props: dict[str, str] = {}
    if file is not None:
        try:
            props = load_properties(file)
        except UnreadableFile as error:
            fail(str(error), "name a readable server.properties file", EXIT_CONFIG)
        if props and not any(base_key(name) in BROKER_KEYS for name in props):
            fail(
                f"{file} is not a server.properties file: none of its keys is one of Kafka's",
                "name a server.properties file",
                EXIT_CONFIG,
            )
    from_environment, without_effect = keys_from_environment(environment)
    props |= from_environment | given
    notes = [Note(v, f"{v} has no effect: it is for a JVM or the image's scripts", False) for v in without_effect]
    if "listeners" not in props:
        notes += _add_listeners(props, environment, from_environment.get("advertised.listeners"))
    source = _source(file, bool(from_environment), bool(given))
    wanted = run.plan(props, source, alone=processes == 1)
    if file is not None:
        exposure.warn(exposure.of_properties(file, props))
    wanted = wanted._replace(notes=[*wanted.notes, *notes])
    if processes > 1:
        return _run_processes(wanted, processes, log_format, log_level)
    return run.run([wanted])


def _add_listeners(props: dict[str, str], environment: Mapping[str, str], advertised: str | None) -> Iterator[Note]:
    """What a container listens on where its variables do not say so."""
    if (made := default_listeners(environment, advertised)) is not None:
        props["listeners"] = made
        source = "KAFKA_ADVERTISED_LISTENERS" if advertised else "the image"
        yield Note("listeners", f"listeners={made} comes from {source}", False)


def _run_processes(wanted: run.BrokerToRun, processes: int, log_format: str, log_level: str) -> int:
    from kpybroker.cli.processes.derive import NotDerivable, derive
    from kpybroker.cli.processes.supervisor import Family, supervise

    try:
        members = derive(wanted.config.static, processes, _stored_broker_id(wanted.config))
    except NotDerivable as error:
        fail(f"--processes {processes}: {error}", error.fix, EXIT_CONFIG)
    run.log_notes(wanted)
    return supervise(Family(members, log_format, python_level(log_level), quiet=False))


def _stored_broker_id(config: BrokerConfig) -> int | None:
    """The id in `meta.properties` of a log directory, where an earlier start has written one. Bad files are for later:
    the broker that has them reports them."""
    from kpybroker.storage.disk import names
    from kpybroker.storage.disk.checkpoints import decode_meta_properties
    from kpybroker.storage.disk.errors import CorruptCheckpointError

    for directory in config.log_dirs:
        path = os.path.join(directory, names.META_PROPERTIES)
        with suppress(OSError, CorruptCheckpointError):
            stored = decode_meta_properties(Path(path).read_bytes(), path).broker_id
            if stored is not None:
                return stored
    return None


def _source(file: str | None, environment: bool, overrides: bool) -> str:
    parts = [file] if file is not None else []
    parts += ["KAFKA_* variables"] if environment else []
    parts += ["--override"] if overrides else []
    return "from " + ", ".join(parts) if parts else "by default"
