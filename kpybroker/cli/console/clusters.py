"""Which clusters a console has: those of `--cluster` and of several `--profile`, or one as every command has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpybroker.client.connect import profiles
from kpybroker.client.connect.errors import usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.console.options import Around, ConsoleOptions, parse_cluster, parse_connect


def settings_of(connection: Connection, names: Sequence[str], clusters: Sequence[str]) -> dict[str, Settings]:
    """Each cluster by its name; empty without `--cluster` and with one profile. Raises CommandError."""
    if len(names) < 2 and not clusters:
        return {}
    if connection.bootstrap is not None:
        raise usage("-b is one cluster without a name, and others have names", "write --cluster NAME=HOST:PORT")
    found: dict[str, Connection] = {}
    for name in names:
        profiles.checked(name)
        bootstrap = profiles.load(name).get("bootstrap.servers")
        if bootstrap is None:
            raise usage(f"profile {name} names no cluster", f"kpybroker profile set {name} bootstrap.servers=HOST:PORT")
        _add(found, name, connection._replace(profile=name, bootstrap=bootstrap))
    for text in clusters:
        name, bootstrap = parse_cluster(text)
        _add(found, name, connection._replace(profile=None, bootstrap=bootstrap))
    return {name: load(one) for name, one in found.items()}


def _add(found: dict[str, Connection], name: str, connection: Connection) -> None:
    if name in found:
        raise usage(f"two clusters are named {name}", "give each a name of its own: --cluster NAME=HOST:PORT")
    found[name] = connection


def one(connection: Connection, made: Callable[[Settings], ConsoleOptions], around: Around) -> ConsoleOptions:
    """The options of a console of one cluster. Raises CommandError."""
    if len(around.registries) > 1:
        raise usage("there is one cluster, and more than one --schema-registry", "name one")
    settings = load(connection._replace(registry=next(iter(around.registries), None)))
    return made(settings)._replace(
        metrics=around.metrics,
        registry=None if settings.registry is None else settings.registry.url,
        connects=tuple(parse_connect(text) for text in around.connects),
    )
