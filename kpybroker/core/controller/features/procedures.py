"""Procedures about `/feature`: set it up when a controller takes over, and change it for UpdateFeatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.core import metadata_version as mv
from kpybroker.core import tree as t
from kpybroker.core.controller.effects import Procedure, checked, children, get, get_many, info, submit, warning
from kpybroker.core.controller.events import UpdateFeatures
from kpybroker.core.controller.parts import Parts
from kpybroker.core.features import Ranges, VersionRange, newest, unsupported
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.znodes import BrokerRegistration, FinalizedFeatures

if TYPE_CHECKING:
    from kpybroker.core.controller.features.updates import Outcome


class Updated(NamedTuple):
    """What UpdateFeatures did: the error of each feature that was refused, and the epoch of `/feature` to wait for."""

    results: dict[str, KafkaError | None]
    epoch: int | None
    """None: nothing was changed."""


def set_up(parts: Parts) -> Procedure[None]:
    """`/feature` (KIP-584): enabled from inter-broker protocol 2.7 on, and empty below it.

    A new cluster begins with the newest levels, if the settings say so and every registered broker supports them. One
    that has topics, and so comes from a Kafka without this node, begins with none.
    """
    settings = parts.settings
    version = settings.metadata_version
    supported = mv.is_feature_versioning_supported(version)
    node = yield from get(znodes.FEATURE)
    if node is None:
        is_new = not (yield from children(znodes.TOPICS))
        levels = (yield from _common(settings.features)) if supported and is_new and settings.finalizes_newest else {}
        wanted = FinalizedFeatures(supported, levels, mv.feature_znode_version(version))
        op: t.Operation = t.Create(znodes.FEATURE, znodes.encode_features(wanted))
    else:
        existing = znodes.decode_features(node.data)
        features = existing.features if supported and existing.enabled else {}
        wanted = FinalizedFeatures(supported, features, mv.feature_znode_version(version))
        if wanted == existing:
            return
        op = t.SetData(znodes.FEATURE, znodes.encode_features(wanted), node.stat.version)
    (result,) = yield from submit([op])
    if isinstance(result, t.TreeError):
        raise result


def _common(features: Ranges) -> Procedure[dict[str, int]]:
    """The newest levels of these that every registered broker supports."""
    levels = newest(features)
    if levels:
        for ranges in (yield from _registered()).values():
            levels = {name: level for name, level in levels.items() if not unsupported({name: level}, ranges)}
    return levels


def update(parts: Parts, event: UpdateFeatures) -> Procedure[Updated]:
    """Check the updates against what every registered broker supports, and write those that are allowed.

    Raises KafkaError for the whole request. The brokers are read from the tree: one that the controller ignores, as it
    does not support what is finalized, is registered all the same.
    """
    # Not at every start of a broker.
    from kpybroker.core.controller.features.updates import Outcome, Support, update_all, update_each

    if not parts.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    settings = parts.settings
    if not mv.is_feature_versioning_supported(settings.metadata_version):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Feature versioning system is disabled.")
    node = yield from get(znodes.FEATURE)
    if node is None:
        raise KafkaError(ErrorCode.FEATURE_UPDATE_FAILED, f"{znodes.FEATURE} is missing in the tree.")
    existing = znodes.decode_features(node.data)
    support = Support(settings.broker_id, settings.features, (yield from _registered()))
    if event.all_or_nothing:
        try:
            levels = update_all(event.updates, existing.features, support)
        except KafkaError as refusal:
            yield warning(f"{_ident(parts)} {refusal.message}")
            raise
        outcome = Outcome(levels, {one.feature: None for one in event.updates})
    else:
        outcome = update_each(event.updates, existing.features, support)
    refused = [(feature, error) for feature, error in outcome.results.items() if error is not None]
    if refused:
        feature, error = refused[0]
        yield warning(f"{_ident(parts)} Refused updates of features: {len(refused)}. {feature}: {error.message}")
    if event.validate_only or outcome.levels == existing.features:
        return Updated(outcome.results, None)
    return (yield from _write(parts, FinalizedFeatures(True, outcome.levels, existing.version), node, outcome))


def _write(parts: Parts, wanted: FinalizedFeatures, before: t.NodeData, outcome: Outcome) -> Procedure[Updated]:
    op = t.SetData(znodes.FEATURE, znodes.encode_features(wanted), before.stat.version)
    (result,) = yield from checked([op], parts.context.epoch_zk_version)
    if isinstance(result, t.Stat):
        epoch = result.version
    else:
        # The write may be there: its first attempt was applied, and the response to it was lost.
        now = yield from get(znodes.FEATURE)
        if now is None or now.data != op.data:
            yield warning(f"{_ident(parts)} {znodes.FEATURE} could not be written: {result!r}")
            failed = KafkaError(ErrorCode.FEATURE_UPDATE_FAILED)
            return Updated({name: refused or failed for name, refused in outcome.results.items()}, None)
        epoch = now.stat.version
    yield info(f"{_ident(parts)} Finalized features: {dict(wanted.features)}, epoch {epoch}")
    return Updated(outcome.results, epoch)


def _ident(parts: Parts) -> str:
    return f"[Controller id={parts.settings.broker_id}]"


def _registered() -> Procedure[dict[int, Ranges]]:
    """What each registered broker supports; nothing, where its registration cannot be read."""
    ids = sorted(map(int, (yield from children(znodes.BROKER_IDS))))
    found = yield from get_many([znodes.broker_path(broker_id) for broker_id in ids])
    ranges: dict[int, Ranges] = {}
    for broker_id, node in zip(ids, found, strict=True):
        if node is None:
            continue
        try:
            ranges[broker_id] = _ranges_of(znodes.decode_broker(broker_id, node.data))
        except znodes.ZnodeError:
            ranges[broker_id] = {}
    return ranges


def _ranges_of(registration: BrokerRegistration) -> Ranges:
    return {name: VersionRange(*levels) for name, levels in registration.features.items()}


def compatible(
    brokers: Mapping[int, tuple[BrokerRegistration, int]],
) -> Procedure[dict[int, tuple[BrokerRegistration, int]]]:
    """Without the brokers that do not support what is finalized: for the controller they are not there."""
    node = yield from get(znodes.FEATURE)
    existing = None if node is None else znodes.decode_features(node.data)
    if existing is None or not existing.enabled or not existing.features:
        return dict(brokers)
    kept = {i: found for i, found in brokers.items() if not unsupported(existing.features, _ranges_of(found[0]))}
    if ignored := sorted(brokers.keys() - kept.keys()):
        yield warning(
            "Ignoring registration of new brokers due to incompatibilities with finalized features: "
            f"{','.join(map(str, ignored))}"
        )
    return kept
