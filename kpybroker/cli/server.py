"""`kpybroker server FILE`: a stock `server.properties`, the images' environment, and overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kpybroker.cli import run
from kpybroker.cli.exit_codes import EXIT_CONFIG, fail
from kpybroker.cli.log_set_up import set_up_logging
from kpybroker.cli.options import parse_overrides, python_level
from kpybroker.config.interpret import Note
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.sources.environment import keys_from_environment
from kpybroker.config.sources.properties import UnreadableFile, load_properties


def run_server(
    file: str | None,
    environment: Mapping[str, str],
    overrides: Sequence[str],
    log_format: str,
    log_level: str,
) -> int:
    """Run a broker from a properties file, the environment and overrides; the exit code."""
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
    wanted = run.plan(props, _source(file, bool(from_environment), bool(given)))
    notes = [Note(v, f"{v} has no effect: it is for a JVM or the image's scripts", False) for v in without_effect]
    return run.run([wanted._replace(notes=[*wanted.notes, *notes])])


def _source(file: str | None, environment: bool, overrides: bool) -> str:
    parts = [file] if file is not None else []
    parts += ["KAFKA_* variables"] if environment else []
    parts += ["--override"] if overrides else []
    return "from " + ", ".join(parts) if parts else "by default"
