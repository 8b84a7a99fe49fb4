"""Kafka's metadata versions ("3.9-IV0"), the values of `inter.broker.protocol.version` and the message format keys.

As in ``MetadataVersion.fromVersionString``, a release ("3.9", "0.10.2.1") means its newest version.
"""

from __future__ import annotations

from typing import Final

# fmt: off
VERSIONS: Final = (
    "0.8.0", "0.8.1", "0.8.2", "0.9.0", "0.10.0-IV0", "0.10.0-IV1", "0.10.1-IV0", "0.10.1-IV1",
    "0.10.1-IV2", "0.10.2-IV0", "0.11.0-IV0", "0.11.0-IV1", "0.11.0-IV2", "1.0-IV0", "1.1-IV0",
    "2.0-IV0", "2.0-IV1", "2.1-IV0", "2.1-IV1", "2.1-IV2", "2.2-IV0", "2.2-IV1", "2.3-IV0", "2.3-IV1",
    "2.4-IV0", "2.4-IV1", "2.5-IV0", "2.6-IV0", "2.7-IV0", "2.7-IV1", "2.7-IV2", "2.8-IV0", "2.8-IV1",
    "3.0-IV0", "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0",
    "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2",
    "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1",
)
# fmt: on

_NEWEST_OF_RELEASE: Final = {version.partition("-")[0]: version for version in VERSIONS}


def metadata_version(text: str) -> str | None:
    """The full name of the version that `text` means, None if there is no such version."""
    if text in VERSIONS:
        return text
    segments = 3 if text.startswith("0.") else 2
    return _NEWEST_OF_RELEASE.get(".".join(text.partition("-")[0].split(".")[:segments])) if text else None


def at_least(version: str, minimum: str) -> bool:
    """Whether `version` is `minimum` or newer. Both are names in `VERSIONS` or releases."""
    order = VERSIONS.index
    return order(metadata_version(version) or version) >= order(metadata_version(minimum) or minimum)
