"""Internal topics of streams groups, which the coordinator creates while it handles heartbeats (KIP-1071).

As Kafka's ``AutoTopicCreationManager``: a heartbeat never waits for them. Each topic is asked for once at a time, and
one whose creation failed not again for a while; later heartbeats say why it failed.

Not here: which topics are missing (`core.streams_group.topics`) and whether the client may create them (the handler).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.broker.cluster.topic_admin import USE_DEFAULT, NewTopic
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.topic_admin import TopicAdmin
    from kpybroker.broker.loop.host import Host
    from kpybroker.core.security.quotas import MutationShare
    from kpybroker.core.streams_group.topics.topology import TopicInfo

logger = logging.getLogger("kafka.server.DefaultAutoTopicCreationManager")

FAILURES_MAX: Final = 1_000
"""So many failures are remembered, those that end first are forgotten first."""


class _Failure(NamedTuple):
    text: str
    until_ms: int


class StreamsTopics:
    """`create` begins, `failures` says what did not work. Bounded by `FAILURES_MAX`, and by the requests that run."""

    def __init__(self, host: Host, topics: TopicAdmin) -> None:
        self._host = host
        self._topics = topics
        self._in_progress: set[str] = set()
        self._failures: dict[str, _Failure] = {}

    def create(self, topics: Mapping[str, TopicInfo], mutations: MutationShare | None, quiet_ms: int) -> None:
        """Create those that are not being created, in a task. After a failure there is no attempt for `quiet_ms`."""
        now_ms = self._host.clock.time_ms()
        wanted = [
            topic for name, topic in topics.items() if name not in self._in_progress and not self._failed(name, now_ms)
        ]
        if wanted:
            self._in_progress.update(topic.name for topic in wanted)
            self._host.spawn("create internal topics of a streams group", self._create, wanted, mutations, quiet_ms)

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Why the creation of topics failed a moment ago, by name."""
        now_ms = self._host.clock.time_ms()
        return {name: self._failures[name].text for name in names if self._failed(name, now_ms)}

    def _failed(self, name: str, now_ms: int) -> bool:
        failure = self._failures.get(name)
        return failure is not None and failure.until_ms > now_ms

    async def _create(self, topics: list[TopicInfo], mutations: MutationShare | None, quiet_ms: int) -> None:
        names = [topic.name for topic in topics]
        failed: dict[str, str] = {}
        try:
            results = await self._topics.create_topics(
                [
                    NewTopic(
                        topic.name,
                        topic.partitions,
                        topic.replication_factor or USE_DEFAULT,
                        configs=dict(topic.configs),
                    )
                    for topic in topics
                ],
                self._host.config.get_int("request.timeout.ms"),
                mutations=mutations,
            )
        except KafkaError as error:
            failed = dict.fromkeys(names, error.message)
        else:
            for name, result in results.items():
                # One that has no leader in time is there: the next heartbeat finds it, or not.
                if result.error.code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                    failed[name] = result.error.message or result.error.code.message
        finally:
            self._in_progress.difference_update(names)
        until_ms = self._host.clock.time_ms() + quiet_ms
        for name, text in failed.items():
            logger.warning("Could not create the internal topic %s of a streams group: %s", name, text)
            self._failures.pop(name, None)
            self._failures[name] = _Failure(text, until_ms)
        self._forget(self._host.clock.time_ms())

    def _forget(self, now_ms: int) -> None:
        """What is over, and what is too much."""
        kept = sorted(
            ((name, failure) for name, failure in self._failures.items() if failure.until_ms > now_ms),
            key=lambda one: one[1].until_ms,
        )
        self._failures = dict(kept[-FAILURES_MAX:])
