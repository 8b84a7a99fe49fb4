"""Feature levels where consumer groups are finalized: UpdateFeatures 2, and what ApiVersions says of `group.version`.

Versions 0 and 1 are served as Kafka 3.9 has them: see `features.py`. Nothing is changed: the broker is shared. What
Kafka 4 says of features that it has and kpybroker has not is left out.
"""

from __future__ import annotations

from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.script import Ask, ask
from compat_tests.differential.scripts.features import update
from kpybroker.core.features import GROUP_VERSION
from kpybroker.wire.api import ApiKey

API = ApiKey.UPDATE_FEATURES


def listed(version: int | None) -> list[Ask]:
    """Of features only `group.version`; of APIs those of consumer groups."""
    return [
        ask(
            ApiKey.API_VERSIONS,
            v=version,
            client_software_name="differential",
            client_software_version="1.0",
            only={
                "api_keys": f"api_key={key}",
                **(
                    {"supported_features": f"name={GROUP_VERSION}", "finalized_features": f"name={GROUP_VERSION}"}
                    if version != 0
                    else {}
                ),
            },
        )
        for key in (68, 69)
    ]


SCRIPTS = [
    next_to_4(
        "cg-features-listed",
        ApiKey.API_VERSIONS,
        "that consumer groups are there",
        listed(3),
        listed(4),
        versions=(3, 3),
    ),
    next_to_4(
        "cg-features-refused",
        API,
        "levels that there are not, features that there are not, ways that do not fit",
        update("no.such.feature", 1),
        update("", 1),
        update(GROUP_VERSION, 2),
        update(GROUP_VERSION, -1),
        update(GROUP_VERSION, 32767),
        update(GROUP_VERSION, 0),
        update("no.such.feature", 0, 3, True),
        ask(API, feature_updates=[]),
        listed(4),
        versions=(2, 2),
    ),
    next_to_4(
        "cg-features-types",
        API,
        "types of an upgrade that there are not; validations",
        [update(GROUP_VERSION, 1, upgrade_type) for upgrade_type in (0, 2, 3, 4, -1)],
        [update(GROUP_VERSION, 0, upgrade_type) for upgrade_type in (0, 1, 4, -1)],
        update(GROUP_VERSION, 1, validate_only=True),
        update(GROUP_VERSION, 2, validate_only=True),
        update(GROUP_VERSION, 0, 2, validate_only=True),
        update(GROUP_VERSION, 0, 3, validate_only=True),
        listed(4),
        versions=(2, 2),
    ),
]
