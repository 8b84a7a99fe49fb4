"""Profiles: named files of a client's keys, so that a command need not be given the cluster each time.

A profile is a `.properties` file as `--command-config` takes it, with a schema registry's keys where there is one. They
are in `profiles/` of the directory of configuration, which only its user may read, and `profile` next to it has the
name of the one that is in use. Which one a command has: `--profile`, else KPYBROKER_PROFILE, else that file's.

What never lives here: which keys override which (`settings`).
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.connect.properties import is_secret
from kpybroker.client.connect.visible import is_text
from kpybroker.config.sources.properties import UnreadableFile, load_properties
from kpybroker.system.user_directories import config_directory

ENVIRONMENT: Final = "KPYBROKER_PROFILE"
NONE: Final = "none"
"""No profile, as a name."""
HIDDEN: Final = "***"
NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
SUFFIX: Final = ".properties"


def directory() -> Path:
    """Where profiles are: XDG_CONFIG_HOME's, Windows' APPDATA's, or ~/.config. Raises CommandError without a home."""
    try:
        return config_directory(os.environ)
    except RuntimeError:
        raise usage("this user has no home directory", "set XDG_CONFIG_HOME to where profiles are kept") from None


def chosen(flag: str | None) -> str | None:
    """The profile of a command with this `--profile`; None for none. Raises CommandError for a name that is none."""
    name = flag if flag is not None else os.environ.get(ENVIRONMENT)
    if name is None:
        name = current()
    return None if name in ("", NONE, None) else checked(name)


def current() -> str | None:
    """The name that `profile use` has written; None for none, and where nothing can be read."""
    try:
        text = (directory() / "profile").read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, CommandError):
        return None
    return text or None


def use(name: str | None) -> None:
    """From now on commands have this profile, or none. Raises CommandError."""
    if name is not None:
        load(name)
    _write(directory() / "profile", f"{name or ''}\n")


def names() -> list[str]:
    """All profiles. Raises CommandError."""
    try:
        found = [file.name.removesuffix(SUFFIX) for file in (directory() / "profiles").glob(f"*{SUFFIX}")]
    except OSError as error:
        raise _unreadable(error) from None
    return sorted(name for name in found if NAME.fullmatch(name))


def load(name: str) -> dict[str, str]:
    """The keys of a profile. Raises CommandError with exit code 2."""
    file = _file(name)
    if not file.is_file():
        known = f"; there are {', '.join(names())}" if names() else ""
        raise usage(f"there is no profile {name}{known}", f"make it: kpybroker profile set {name} KEY=VALUE")
    try:
        return load_properties(str(file))
    except UnreadableFile as error:
        raise usage(str(error), f"correct the file, or delete it: kpybroker profile delete {name}") from None


def save(name: str, properties: Mapping[str, str]) -> Path:
    """Write a profile, which is whole or not there at any time; its file. Raises CommandError."""
    import javaproperties

    file = _file(name)
    _write(file, javaproperties.dumps(dict(properties), timestamp=False, sort_keys=True))
    return file


def delete(name: str) -> None:
    """Remove a profile; if it is in use, none is from then on. Raises CommandError."""
    try:
        _file(name).unlink()
    except OSError as error:
        raise usage(
            f"profile {name} cannot be deleted: {error.strerror}", "kpybroker profile list shows them"
        ) from None
    if current() == name:
        use(None)


def exists(name: str) -> bool:
    """Whether there is such a profile."""
    return _file(name).is_file()


def shown(key: str, value: str) -> str:
    """A value without its secrets."""
    if is_secret(key):
        return HIDDEN
    return without_password(value) if key.endswith(".url") else value


def without_password(url: str) -> str:
    """An address without its user and password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else url


def checked(name: str) -> str:
    """The name, if a profile may have it. Raises CommandError."""
    if not NAME.fullmatch(name) or name == NONE:
        raise usage(
            f"{name[:100]!r} is no name of a profile", "write letters, digits, dots, - and _, 64 at most, and not none"
        )
    return name


def _file(name: str) -> Path:
    return directory() / "profiles" / f"{checked(name)}{SUFFIX}"


def _write(file: Path, text: str) -> None:
    """A file that only its user may read: passwords may be in it."""
    assert is_text(text), "keys and values were checked"
    temporary = file.with_name(f"{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        for folder in (directory(), file.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
        temporary.replace(file)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CommandError(
            f"{file} cannot be written: {error.strerror}", "make room, or set XDG_CONFIG_HOME to another directory"
        ) from None


def _unreadable(error: OSError) -> CommandError:
    return usage(f"{error.filename} cannot be read: {error.strerror}", "let this user read it, or set XDG_CONFIG_HOME")
