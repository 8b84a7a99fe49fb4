"""The rules of UpdateFeatures, with Kafka's texts: which updates of finalized levels are allowed.

There are two sets of rules, as there are two Kafkas. Versions 0 and 1 are those of Kafka 3.9 in ZooKeeper mode
(``KafkaController.processFeatureUpdates``): each feature has its own result, and those that are allowed are updated.
Version 2 has those of Kafka 4.3 (``FeatureControlManager.updateFeatures``): all or nothing.

Differences, for both: a broker that does not support the level is named, and a validation only changes nothing. (Kafka
3.9 does not name it, and in ZooKeeper mode it makes the change.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kpybroker.core.features import (
    METADATA_VERSION,
    NOT_SUPPORTED,
    Levels,
    Ranges,
    Update,
    UpgradeType,
    VersionRange,
    feature_named,
)
from kpybroker.wire.errors import ErrorCode, KafkaError

FAILED_FOR_ALL: Final = "The update failed for all features since the following feature had an error: "
NO_METADATA_VERSION: Final = (
    f" {METADATA_VERSION} is a level of KRaft, which this cluster does not have: update features by their names."
)


class Support(NamedTuple):
    """What supports which features: the controller, and every registered broker by its id."""

    controller_id: int
    controller: Ranges
    brokers: Mapping[int, Ranges]


class Outcome(NamedTuple):
    """The levels after the updates, and the error of each feature that was refused, in the order of the request."""

    levels: dict[str, int]
    results: dict[str, KafkaError | None]


# --- versions 0 and 1


def update_each(updates: Iterable[Update], finalized: Levels, support: Support) -> Outcome:
    """Apply the updates that are allowed. Of several updates of one feature the last counts."""
    levels = dict(finalized)
    results: dict[str, KafkaError | None] = {}
    for update in updates:
        error = _refusal(update, finalized.get(update.feature), support)
        results[update.feature] = None if error is None else KafkaError(ErrorCode.INVALID_REQUEST, error)
        if error is None and _is_deletion(update):
            levels.pop(update.feature, None)
        elif error is None:
            levels[update.feature] = update.level
    return Outcome(levels, results)


def _is_deletion(update: Update) -> bool:
    return update.level < 1 and update.upgrade_type is not UpgradeType.UPGRADE


def _refusal(update: Update, existing: int | None, support: Support) -> str | None:
    """Why not, None if it may; in the order of Kafka's ``validateFeatureUpdate``."""
    if not update.feature:
        return "Feature name can not be empty."
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "Received unknown upgrade type."
    if _is_deletion(update):
        return "Can not delete non-existing finalized feature." if existing is None else None
    if update.level < 1:
        return (
            f"Can not provide versionLevel: {update.level} less than 1 without setting the SAFE downgradeType in the "
            "request."
        )
    if existing is not None and (error := _wrong_direction(update, existing)) is not None:
        return error
    return _not_supported(update, support)


def _wrong_direction(update: Update, existing: int) -> str | None:
    if update.level == existing:
        verb = "downgrade" if update.upgrade_type is UpgradeType.SAFE_DOWNGRADE else "upgrade"
        return f"Can not {verb} a finalized feature from existing versionLevel:{existing} to the same value."
    if update.level < existing and update.upgrade_type is not UpgradeType.SAFE_DOWNGRADE:
        return (
            f"Can not downgrade finalized feature from existing versionLevel:{existing} to provided "
            f"versionLevel:{update.level} without setting the downgradeType to SAFE in the request."
        )
    if update.level > existing and update.upgrade_type is not UpgradeType.UPGRADE:
        return (
            "When the downgradeType is set to SAFE in the request, the provided "
            f"versionLevel:{update.level} can not be greater than existing versionLevel:{existing}."
        )
    return None


def _not_supported(update: Update, support: Support) -> str | None:
    levels = support.controller.get(update.feature)
    if levels is None:
        return "Could not apply finalized feature update because the provided feature is not supported."
    failed = f"Could not apply finalized feature update because the provided versionLevel:{update.level} is "
    if update.level < levels.min:
        return f"{failed}lower than the supported minVersion:{levels.min}."
    if update.level > levels.max:
        return f"{failed}higher than the supported maxVersion:{levels.max}."
    reasons = _brokers_without(update, support)
    if reasons:
        return (
            "Could not apply finalized feature update because brokers were found to have incompatible versions for "
            f"the feature. {'; '.join(reasons)}"
        )
    return None


# --- version 2


def update_all(updates: Sequence[Update], finalized: Levels, support: Support) -> dict[str, int]:
    """The levels with all updates applied. Raises KafkaError for the first that is refused.

    A tool that raises all features of a release names `metadata.version` as well: that is refused first.
    """
    levels = dict(finalized)
    wanted = {update.feature: update for update in updates}
    for update in sorted(wanted.values(), key=lambda one: one.feature != METADATA_VERSION):
        error = _invalid(update, finalized.get(update.feature, 0), support)
        if error is not None:
            text = f"Invalid update version {update.level} for feature {update.feature}. {error}"
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, FAILED_FOR_ALL + text)
        if update.level:
            levels[update.feature] = update.level
        else:
            levels.pop(update.feature, None)
    return levels


def _invalid(update: Update, current: int, support: Support) -> str | None:
    """Why not, None if it may; in the order of Kafka's ``FeatureControlManager.updateFeature``."""
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    reason = _reason(update.level, f"Local controller {support.controller_id}", _of(update, support.controller))
    if reason is not None:
        return reason + (NO_METADATA_VERSION if update.feature == METADATA_VERSION else "")
    reasons = _brokers_without(update, support)
    if reasons:
        return "; ".join(reasons)
    if update.level < current and update.upgrade_type is UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if update.level > current and update.upgrade_type is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    if feature_named(update.feature) is None and update.feature not in support.controller:
        return f"Feature {update.feature} not found."
    return None


# --- both


def _brokers_without(update: Update, support: Support) -> list[str]:
    reasons = (
        _reason(update.level, f"Broker {broker_id}", _of(update, ranges))
        for broker_id, ranges in sorted(support.brokers.items())
    )
    return [reason for reason in reasons if reason is not None]


def _of(update: Update, ranges: Ranges) -> VersionRange:
    return ranges.get(update.feature, NOT_SUPPORTED)


def _reason(level: int, what: str, levels: VersionRange) -> str | None:
    """Kafka's ``QuorumFeatures.reasonNotSupported``."""
    if levels.contains(level):
        return None
    if levels.max == 0:
        return f"{what} does not support this feature."
    return f"{what} only supports versions {levels}"
