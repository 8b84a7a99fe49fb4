"""A consumer as its machine's neighbours see it: what it owns, and what it does with each response, lost or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ConsumerHeartbeatResult
from kpybroker.wire.errors import ErrorCode

GROUP = "g"
GONE = frozenset((ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND))
"""Errors after which a member gives up all that it owns, and joins again."""
RETRIABLE = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR))


@dataclass
class Client:
    """`owned` is what its application reads from; `wanted` what it was last assigned."""

    member_id: str
    instance_id: str | None = None
    topic_names: frozenset[str] = frozenset("t")
    pattern: str | None = None
    epoch: int = 0
    owned: dict[bytes, frozenset[int]] = field(default_factory=dict)
    wanted: dict[bytes, frozenset[int]] = field(default_factory=dict)
    says_all: bool = True

    def begin_again(self, member_id: str | None = None) -> None:
        """Nothing is left of it but its name."""
        self.member_id = self.member_id if member_id is None else member_id
        self.epoch, self.owned, self.wanted, self.says_all = 0, {}, {}, True

    def give_up(self) -> None:
        """What it was not assigned any more is not read any more."""
        kept = {topic: self.owned[topic] & self.wanted.get(topic, frozenset()) for topic in self.owned}
        self.owned = {topic: partitions for topic, partitions in kept.items() if partitions}

    def heartbeat(self, *, says_owned: bool) -> ConsumerHeartbeat:
        """The next request; after an error or a lost response, and to join, it says all there is to say."""
        request = ConsumerHeartbeat(
            GROUP,
            self.member_id,
            self.epoch,
            instance_id=self.instance_id,
            client_id="c",
            client_host="/127.0.0.1",
            owned=dict(self.owned) if says_owned or self.says_all else None,
        )
        if not self.says_all:
            return request
        return replace(request, topic_names=self.topic_names, pattern=self.pattern or "", rebalance_timeout_ms=60_000)

    def receive(self, result: ConsumerHeartbeatResult | None) -> None:
        """Its response has come; None: it was lost."""
        if result is None or result.error in RETRIABLE:
            self.says_all = True
            return
        if result.error in GONE:
            self.begin_again()
            return
        if result.error is not ErrorCode.NONE:
            return
        self.epoch = result.member_epoch
        self.says_all = False
        if result.assignment is not None:
            self.wanted = dict(result.assignment)
            # What it had and has no longer it must give up first; what is new it may read at once.
            self.owned = _union(self.owned, self.wanted)


def _union(one: Mapping[bytes, frozenset[int]], other: Mapping[bytes, frozenset[int]]) -> dict[bytes, frozenset[int]]:
    return {topic: one.get(topic, frozenset()) | other.get(topic, frozenset()) for topic in {**one, **other}}
