"""Configuration, features and producer ids: bytes <-> values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kpybroker.wire.map_order import java_properties_order
from kpybroker.wire.znodes.jackson import (
    immutable,
    integer,
    mutable,
    ordered,
    parse,
    string,
    to_json,
)
from kpybroker.wire.znodes.paths import FEATURE, LATEST_PRODUCER_ID_BLOCK


def encode_config(config: Mapping[str, str]) -> bytes:
    """The value of `/config/<type>/<entity>`: overrides by key."""
    return to_json({"version": 1, "config": ordered(config, java_properties_order)})


def decode_config(data: bytes | None) -> dict[str, str]:
    """The overrides by key; none for an empty node or for JSON without a `config` object, as in Kafka."""
    if not data:
        return {}
    return parse("a configuration", data, _config)


def _config(values: dict[str, Any]) -> dict[str, str]:
    config = values.get("config")
    return {key: string(value) for key, value in config.items()} if isinstance(config, dict) else {}


def encode_config_change(entity_path: str) -> bytes:
    """`entity_path` is `<type>/<sanitized name>`, e.g. `users/alice/clients/app`."""
    return to_json({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None) -> str:
    """The entity path; version 1 (before 0.10.1) names type and entity separately."""
    return parse("a configuration change", data, _config_change)


def _config_change(values: dict[str, Any]) -> str:
    match integer(values["version"]):
        case 1:
            return f"{string(values['entity_type'])}/{string(values['entity_name'])}"
        case 2:
            return string(values["entity_path"])
        case version:
            raise ValueError(f"unsupported version {version}")


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """`/latest_producer_id_block`: the ids from `first` to `last`, both included, given to a broker."""

    broker_id: int
    first: int
    last: int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """The value of `/latest_producer_id_block`."""
    values = {
        "version": 1,
        "broker": block.broker_id,
        "block_start": str(block.first),
        "block_end": str(block.last),
    }
    return to_json(immutable(values))


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock:
    """The block given out last. Raises ZnodeError."""
    return parse(
        LATEST_PRODUCER_ID_BLOCK,
        data,
        lambda values: ProducerIdBlock(
            integer(values["broker"]), int(string(values["block_start"])), int(string(values["block_end"]))
        ),
    )


@dataclass(frozen=True, slots=True)
class FinalizedFeatures:
    """`/feature`. `features` maps a name to its finalized version; version 2 from 3.3 on, else 1."""

    enabled: bool
    features: Mapping[str, int]
    version: int = 2


def encode_features(node: FinalizedFeatures) -> bytes:
    """The value of `/feature` in the node's version."""
    features: dict[str, dict[str, int]] = {}
    for name, level in node.features.items():
        features[name] = {"max_version_level": level}
        if node.version == 1:
            features[name]["min_version_level"] = level
    values = {"version": node.version, "status": int(node.enabled), "features": immutable(features)}
    return to_json(mutable(values, literal=3))


def decode_features(data: bytes | None) -> FinalizedFeatures:
    """The finalized features, version 1 or 2. Raises ZnodeError."""
    return parse(FEATURE, data, _features)


def _features(values: dict[str, Any]) -> FinalizedFeatures:
    version, status = integer(values["version"]), integer(values["status"])
    if version not in (1, 2) or status not in (0, 1):
        raise ValueError(f"unsupported version {version} or status {status}")
    features = {name: integer(levels["max_version_level"]) for name, levels in values["features"].items()}
    for name, levels in values["features"].items():
        low = integer(levels["min_version_level"]) if version == 1 else 1
        if low < 1 or features[name] < low:
            raise ValueError(f"feature {name} has versions {low} to {features[name]}")
    return FinalizedFeatures(status == 1, features, version)
