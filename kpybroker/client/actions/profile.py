"""`profile list`, `show`, `set`, `unset`, `use` and `delete`."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kpybroker.client.connect import profiles
from kpybroker.client.connect.errors import CommandError, keep_secret, note, usage
from kpybroker.client.connect.properties import is_secret
from kpybroker.client.connect.settings import Connection, load, parse_options
from kpybroker.client.connect.visible import is_text
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output

PROFILES: Final = (
    Column("PROFILE", "profile"),
    Column("IN USE", "in_use"),
    Column("BOOTSTRAP", "bootstrap"),
    Column("SECURITY", "security"),
    Column("REGISTRY", "registry"),
)
KEYS: Final = (Column("KEY", "key"), Column("VALUE", "value"))
FILES: Final = ".location"
"""The end of keys that name a file."""


def show_list(output: Output) -> int:
    """Print the profiles."""
    chosen = profiles.chosen(None)
    output.rows([_row(name, chosen) for name in profiles.names()], PROFILES, empty="there are no profiles")
    return 0


def _row(name: str, chosen: str | None) -> Row:
    found = profiles.load(name)
    url = found.get("schema.registry.url")
    return {
        "profile": name,
        "in_use": name == chosen,
        "bootstrap": found.get("bootstrap.servers"),
        "security": found.get("security.protocol", "PLAINTEXT"),
        "registry": None if url is None else profiles.shown("schema.registry.url", url),
    }


def show(name: str | None, output: Output) -> int:
    """Print the keys of a profile."""
    name = name if name is not None else profiles.chosen(None)
    if name is None:
        raise usage("no profile is in use", "name one: kpybroker profile show PROFILE; profile list shows them")
    found = profiles.load(name)
    if output.is_table:
        output.rows([{"key": key, "value": profiles.shown(key, found[key])} for key in sorted(found)], KEYS)
    else:
        output.data({key: profiles.shown(key, found[key]) for key in sorted(found)})
    return 0


def set_values(name: str, values: Sequence[str], file: str | None, asked: Sequence[str]) -> int:
    """Make or change a profile. Raises CommandError, and then nothing has changed."""
    given = _given(values, file, asked)
    is_new = not profiles.exists(name)
    merged = {**({} if is_new else profiles.load(name)), **given}
    _check(merged)
    path = profiles.save(name, merged)
    note(f"{'made' if is_new else 'changed'} profile {name} in {path}")
    if profiles.chosen(None) != name:
        note(f"to use it: kpybroker profile use {name}, or --profile {name}")
    return 0


def _given(values: Sequence[str], file: str | None, asked: Sequence[str]) -> dict[str, str]:
    if not (values or file or asked):
        raise usage("there is nothing to set", "name KEY=VALUE, --from FILE or --ask KEY")
    given = {} if file is None else _of_file(file)
    try:
        given |= parse_options(values)
    except CommandError as error:
        raise usage(error.cause.removeprefix("-X "), "write KEY=VALUE") from None
    return given | {key: _ask(key) for key in asked}


def _of_file(file: str) -> dict[str, str]:
    from kpybroker.config.sources.properties import UnreadableFile, load_properties

    try:
        return load_properties(file)
    except UnreadableFile as error:
        raise usage(str(error), "name a .properties file as Kafka's own tools take it") from None


def _ask(key: str) -> str:
    value = getpass.getpass(f"{key}: ") if sys.stdin.isatty() else sys.stdin.readline().removesuffix("\n")
    if not value:
        raise usage(f"no value for {key} was given", "write it on the terminal, or one line a key to standard input")
    return value


def _check(merged: dict[str, str]) -> None:
    """That commands can use it; a file that it names is named by its whole path from now on. Raises CommandError."""
    keep_secret(value for key, value in merged.items() if is_secret(key))
    for key, value in merged.items():
        if not (is_text(key) and is_text(value)) or any(character in key + value for character in "\0\r\n"):
            raise usage(f"{key!r} or its value is not one line of UTF-8", "correct it")
        if key.endswith(FILES) and Path(value).is_file():
            merged[key] = str(Path(value).absolute())
    _load_alone(merged)


def _load_alone(merged: Mapping[str, str]) -> None:
    load(Connection(options=tuple(f"{key}={value}" for key, value in merged.items())))


def unset(name: str, keys: Sequence[str]) -> int:
    """Remove keys. Raises CommandError, and then nothing has changed."""
    found = profiles.load(name)
    for key in keys:
        if found.pop(key, None) is None:
            raise usage(f"profile {name} has no key {key}", f"kpybroker profile show {name} shows its keys")
    profiles.save(name, found)
    note(f"changed profile {name}")
    return 0


def use(name: str) -> int:
    """Let commands use it."""
    profiles.use(None if name == profiles.NONE else name)
    note("no profile is in use" if name == profiles.NONE else f"profile {name} is in use")
    return 0


def delete(name: str, execute: bool) -> int:
    """Delete it, or say so."""
    found = profiles.exists(name)
    if not found:
        profiles.load(name)  # which says what there is
    if execute:
        profiles.delete(name)
        note(f"deleted profile {name}")
    else:
        note(f"profile {name} would be deleted")
        note("dry run: nothing was changed; add --execute to do it")
    return 0
