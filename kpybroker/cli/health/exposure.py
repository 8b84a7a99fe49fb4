"""What other users of this machine can read or change of a broker's files, as warnings at the start.

What a broker creates is private from its creation. What earlier versions created, and what an administrator made, stays
as it is and is served: only a warning names it, with the command that closes it.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.synonyms import base_key
from kpybroker.system.private_files import shown_to_others

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

logger = logging.getLogger("kafka.server.KafkaServer")

KEY_STORES: Final = frozenset(("ssl.keystore.location", "zookeeper.ssl.keystore.location"))
_ANYONE_WRITES: Final = 0o002


def warn(paths: Iterable[str]) -> None:
    """One line for each."""
    for path in paths:
        logger.warning(
            "Other users of this machine can read or change %s: run `chmod -R go-rwx -- %s` (mode=%04o)",
            path,
            shlex.quote(path),
            shown_to_others(path),
        )


def of_files(files: Iterable[str | None]) -> Iterator[str]:
    """Those that others can read or change."""
    return (file for file in files if file is not None and shown_to_others(file))


def of_broker(config: BrokerConfig, more: Iterable[Path] = ()) -> Iterator[str]:
    """Log directories with something in them that others can read, key stores, and those of `more` that they can."""
    for directory in config.log_dirs:
        if _is_open(directory):
            yield directory
    stores = [value for name, value in config.static.items() if base_key(name) in KEY_STORES]
    yield from of_files((*dict.fromkeys(stores), *map(str, more)))


def of_properties(file: str, props: Mapping[str, str]) -> Iterator[str]:
    """The file, if it holds a password or another secret."""
    secret = (name for name in props if (key := BROKER_KEYS.get(base_key(name))) is not None and key.sensitive)
    if any(secret) and shown_to_others(file):
        yield file


def _is_open(directory: str) -> bool:
    """A directory that others may enter is fine while all in it is private: an administrator may need it so."""
    mode = shown_to_others(directory)
    if not mode:
        return False
    try:
        with os.scandir(directory) as entries:
            return bool(mode & _ANYONE_WRITES) or any(shown_to_others(entry.path) for entry in entries)
    except OSError:
        return False
