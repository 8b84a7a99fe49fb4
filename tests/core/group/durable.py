"""What a log must give back: all that a consumer group's records say, and what is derived from them."""

from __future__ import annotations

from kpybroker.core.consumer_group.state import ConsumerGroup


def consumer_state(group: ConsumerGroup | None) -> object:
    """Comparable; None for None."""
    if group is None:
        return None
    return {
        "epoch": group.epoch,
        "metadata_hash": group.metadata_hash,
        "target_epoch": group.target_epoch,
        "members": group.members,
        "targets": group.targets,
        "patterns": group.patterns,
        "has_partition_metadata": group.has_partition_metadata,
        "static_members": group.static_members,
        "pattern_counts": dict(group.pattern_counts),
        "assignors": dict(group.assignors),
        "classic": (group.classic_count, dict(group.classic_protocols)),
        "holders": {topic_id: dict(counts) for topic_id, counts in group.holders.items()},
        "topics": dict(group._topic_counts),
    }
