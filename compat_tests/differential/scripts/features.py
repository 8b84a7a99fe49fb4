"""UpdateFeatures 0-1, on brokers without features, and what ApiVersions says of them."""

from __future__ import annotations

from compat_tests.differential.script import Ask, ask, script
from kpybroker.wire.api import ApiKey

API = ApiKey.UPDATE_FEATURES


def update(
    name: str, level: int, upgrade_type: int = 1, allow_downgrade: bool = False, validate_only: bool = False
) -> Ask:
    """One feature, as either version has it."""
    wanted = {
        "feature": name,
        "max_version_level": level,
        "upgrade_type": upgrade_type,
        "allow_downgrade": allow_downgrade,
    }
    return ask(API, feature_updates=[wanted], validate_only=validate_only)


def seen() -> Ask:
    return ask(ApiKey.API_VERSIONS, client_software_name="differential", client_software_version="1.0")


SCRIPTS = [
    script(
        "update-features",
        API,
        "every refusal that there is without features; nothing is ever changed",
        update("group.version", 1),
        update("metadata.version", 21),
        update("no.such.feature", 1),
        update("group.version", 0),
        update("group.version", -1),
        update("group.version", 0, 2, True),
        update("group.version", 0, 3, True),
        update("group.version", 1, 2, True),
        update("group.version", 1, 3, True),
        update("group.version", 32767),
        update("", 1),
        update("", 0, 2, True),
        ask(API, feature_updates=[]),
        seen(),
        versions=(0, 1),
    ),
    script(
        "update-features-types",
        API,
        "types of an upgrade that there are not, and a validation",
        update("group.version", 1, 0),
        update("group.version", 1, 4),
        update("group.version", 1, -1),
        update("group.version", 0, 0),
        update("", 1, 0),
        update("group.version", 1, validate_only=True),
        update("group.version", 0, 2, validate_only=True),
        seen(),
        versions=(1, 1),
    ),
]
