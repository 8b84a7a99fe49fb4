"""Subscriptions by regular expression: when the topics that patterns match are looked for again, and what that changes.

All patterns of a group are resolved together, so that they cause one rebalance. The search runs elsewhere, with the
rights of the member whose heartbeat or JoinGroup asked for it (the effect `ResolvePatterns`), at most once at a time
and every ten seconds: when a pattern is new, when there are new topics, or when the last search is old
(GroupMetadataManager, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final

from kpybroker.core.consumer_group.members import MemberMetadata
from kpybroker.core.consumer_group.records import ConsumerRecord, GroupEpochRecord, PatternRecord
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ResolvedPattern, ResolvePatterns
from kpybroker.core.machine import Step
from kpybroker.core.modern_group.records import GroupEpoch
from kpybroker.wire.errors import ErrorCode, KafkaError

REFRESH_INTERVAL_MIN_MS: Final = 10_000


class PatternChange(Enum):
    """What a heartbeat did to the member's pattern."""

    NONE = 0
    UNRESOLVED = 1
    """It has another one, whose topics are not known yet: the group's epoch changes when they are."""
    RESOLVED = 2
    """It has another one whose topics are known, or none any more."""


def change_pattern(
    group: ConsumerGroup, old: MemberMetadata, new: MemberMetadata
) -> tuple[PatternChange, list[ConsumerRecord]]:
    """What it means that a member goes from one pattern to another. Raises INVALID_REGULAR_EXPRESSION."""
    before, after = old.pattern or "", new.pattern or ""
    if old.pattern == new.pattern:
        return PatternChange.NONE, []
    records: list[ConsumerRecord] = []
    if before and group.pattern_counts[before] == 1:
        records.append(PatternRecord(group.group_id, before, None))
    if not after:
        return (PatternChange.RESOLVED if before else PatternChange.UNRESOLVED), records
    if not group.pattern_counts[after]:
        problem = group.shared.surroundings.pattern_problem(after)
        if problem is not None:
            text = f"SubscribedTopicRegex `{after}` is not a valid regular expression: {problem}."
            raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
    elif after in group.patterns:
        return PatternChange.RESOLVED, records
    return PatternChange.UNRESOLVED, records


def maybe_resolve(
    step: Step[Any],
    group: ConsumerGroup,
    request: ConsumerHeartbeat,
    old: MemberMetadata,
    new: MemberMetadata,
) -> None:
    """Ask for the topics of all patterns, if it is time to."""
    if not group.pattern_counts and not new.pattern:
        return
    now_ms = step.now.wall_ms
    found_at, version = _last(group.patterns.values())
    if group.resolving or (found_at is not None and now_ms <= found_at + REFRESH_INTERVAL_MIN_MS):
        return
    patterns = set(group.pattern_counts)
    if old.pattern != new.pattern:
        if old.pattern and group.pattern_counts[old.pattern] == 1:
            patterns.discard(old.pattern)
        if new.pattern:
            patterns.add(new.pattern)
    interval_ms = group.shared.surroundings.limits.regex_refresh_interval_ms
    is_due = (
        len(patterns) != len(group.patterns)
        or bool(new.pattern and not group.pattern_counts[new.pattern])
        or version < group.shared.new_topics_version
        or (found_at is None or now_ms > found_at + interval_ms)
    )
    if is_due and patterns:
        group.resolving = True
        step.outcome.effects.append(ResolvePatterns(group.group_id, frozenset(patterns), request.rights))


def _last(resolved: Iterable[ResolvedPattern]) -> tuple[int | None, int]:
    """When patterns were last resolved, and in which version of the metadata: any of them says it."""
    one = next(iter(resolved), None)
    return (None, 0) if one is None else (one.timestamp_ms, one.version)


def on_patterns_resolved(step: Step[Any], group: ConsumerGroup, resolved: Mapping[str, ResolvedPattern] | None) -> None:
    """The topics that were found for patterns; None if the search failed, and will be tried again."""
    group.resolving = False
    if resolved is not None and (records := _resolved_records(group, resolved)):
        step.write(records, partial(_on_written, group.group_id))


def _on_written(group_id: str, step: Step[Any], error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        step.warn(f"[GroupId {group_id}] Could not write the topics of patterns: {error.name}")


def _resolved_records(group: ConsumerGroup, resolved: Mapping[str, ResolvedPattern]) -> list[ConsumerRecord]:
    """What was found, for the patterns that members still have, and the group's next epoch if that changes anything."""
    still = {pattern: found for pattern, found in resolved.items() if group.pattern_counts[pattern]}
    records: list[ConsumerRecord] = [PatternRecord(group.group_id, pattern, found) for pattern, found in still.items()]
    none: frozenset[str] = frozenset()
    known = {pattern: one.topic_names for pattern, one in group.patterns.items()}
    is_changed = any(known.get(pattern, none) != found.topic_names for pattern, found in still.items())
    names = set(none.union(*(member.metadata.topic_names for member in group.members.values())))
    for pattern, topic_names in (known | {pattern: found.topic_names for pattern, found in still.items()}).items():
        names |= topic_names if group.pattern_counts[pattern] else none
    metadata_hash = group.shared.metadata_hash(names)
    if is_changed or metadata_hash != group.metadata_hash:
        records.append(GroupEpochRecord(group.group_id, GroupEpoch(group.next_epoch, metadata_hash)))
        group.shared.counts.consumer_rebalances += 1
    return records
