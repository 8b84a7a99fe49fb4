"""Consumer groups while `group.version` is not finalized any more. At the end it is again: the brokers are shared."""

from __future__ import annotations

from compat_tests.differential.grouped import G
from compat_tests.differential.kafka_4.steps import DESCRIBE, HEARTBEAT, beat, joins, leaves, next_to_4, topic, view
from compat_tests.differential.script import Ask, ask
from kpybroker.core.features import GROUP_VERSION
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

UPGRADE, UNSAFE_DOWNGRADE = 1, 3


def finalize(level: int, upgrade_type: int, then: ErrorCode) -> list[Ask]:
    """Change the level, and wait until groups that there are not get this error."""
    update = {"feature": GROUP_VERSION, "max_version_level": level, "upgrade_type": upgrade_type}
    return [
        ask(ApiKey.UPDATE_FEATURES, v=2, feature_updates=[update]),
        view("{t}-none", until={"groups.0.error_code": int(then)}),
    ]


SCRIPTS = [
    next_to_4(
        "cg-withdrawn",
        HEARTBEAT,
        "members and groups of before, and what else may be asked for",
        topic(),
        joins("a", "{t}", compared=False),
        finalize(0, UNSAFE_DOWNGRADE, ErrorCode.UNSUPPORTED_VERSION),
        *(
            step
            for version in (0, 1)
            for step in (
                beat("a", 2, v=version),
                joins("b", "{t}", v=version),
                joins("", "{t}", v=version),
                leaves("a", v=version),
                ask(DESCRIBE, v=version, group_ids=[G, "{t}-none"]),
                ask(DESCRIBE, v=version, group_ids=[]),
            )
        ),
        finalize(1, UPGRADE, ErrorCode.GROUP_ID_NOT_FOUND),
        beat("a", 2),
        view(),
        versions=(1, 1),
    ),
]
