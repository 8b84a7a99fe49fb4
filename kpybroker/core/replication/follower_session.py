"""The follower's side of a fetch session (KIP-227): which positions the next request must name.

Kafka's ``FetchSessionHandler``. The first request names everything and asks for a session; the next ones name what has
changed. After an error, a lost connection, or when topic ids appear or disappear, a full request closes the old session
and opens another.
"""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest

NO_SESSION = 0
INITIAL_EPOCH = 0
TOPIC_IDS_SINCE = 13
LAST_VERSION_WITH_NAMES = 12


class Position(NamedTuple):
    """What a fetch request carries for one partition."""

    topic_id: bytes
    fetch_offset: int
    log_start_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int


class FollowerSession:
    """Belongs to one fetcher and its one connection."""

    __slots__ = ("_epoch", "_sent", "_session_id", "_uses_topic_ids")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._sent: dict[PartitionKey, Position] = {}
        self._uses_topic_ids = False

    @property
    def is_open(self) -> bool:
        """The leader remembers the positions: the next request may be made by `request_changes`."""
        return self._epoch != INITIAL_EPOCH

    @property
    def partitions(self) -> dict[PartitionKey, Position]:
        """Every partition of the session with its position, whether the last request named it or not."""
        return self._sent

    def request(self, wanted: dict[PartitionKey, Position], version: int) -> tuple[FetchRequest, int] | None:
        """The request's topics and session, and its version: 12 at most where a topic has no id.

        None where there is nothing to ask and nothing to forget.
        """
        by_id = version >= TOPIC_IDS_SINCE and all(position.topic_id != ZERO_UUID for position in wanted.values())
        if by_id != self._uses_topic_ids:
            self._epoch = INITIAL_EPOCH
        is_full = self._epoch == INITIAL_EPOCH
        sent = {} if is_full else self._sent
        gone = [
            (key, position.topic_id)
            for key, position in sent.items()
            if key not in wanted or wanted[key].topic_id != position.topic_id
        ]
        if not wanted and not gone:
            return None
        changed = {key: position for key, position in wanted.items() if sent.get(key) != position}
        request = FetchRequest(session_id=self._session_id, session_epoch=self._epoch)
        self._add_partitions(request, changed)
        forgotten: dict[tuple[str, bytes], FetchRequest.ForgottenTopic] = {}
        for (name, index), topic_id in gone:
            topic = forgotten.get((name, topic_id))
            if topic is None:
                topic = forgotten[name, topic_id] = FetchRequest.ForgottenTopic(topic=name, topic_id=topic_id)
                request.forgotten_topics_data.append(topic)
            topic.partitions.append(index)
        self._sent, self._uses_topic_ids = wanted, by_id
        return request, self._version(version)

    def request_changes(self, changed: dict[PartitionKey, Position], version: int) -> tuple[FetchRequest, int]:
        """As `request`, while the session `is_open`, with all other positions unchanged, which costs nothing for them.

        The partitions are part of the session already, with the same topic ids.
        """
        sent = self._sent
        named = {key: position for key, position in changed.items() if sent[key] != position}
        sent.update(named)
        request = FetchRequest(session_id=self._session_id, session_epoch=self._epoch)
        self._add_partitions(request, named)
        return request, self._version(version)

    def _version(self, newest: int) -> int:
        return newest if self._uses_topic_ids else min(newest, LAST_VERSION_WITH_NAMES)

    @staticmethod
    def _add_partitions(request: FetchRequest, positions: dict[PartitionKey, Position]) -> None:
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for (name, index), position in positions.items():
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchRequest.FetchTopic(topic=name, topic_id=position.topic_id)
                request.topics.append(topic)
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=index,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=position.max_bytes,
                )
            )

    def take_response(self, error_code: int, session_id: int) -> bool:
        """Take the response's session; False where the response is an error and holds nothing else."""
        if error_code:
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION
            self._epoch = INITIAL_EPOCH
            return False
        if session_id == NO_SESSION:
            self._session_id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._session_id = session_id
            self._epoch = 1 if self._epoch == 0x7FFFFFFF else self._epoch + 1
        return True

    def lost(self) -> None:
        """The connection broke: the next request names everything and closes the old session."""
        self._epoch = INITIAL_EPOCH
