"""`Session`: the share session of a member with one broker: which partitions it has, and its next epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.wire import WireBroker
from kpybroker.client.share.values import Ack, Key, batches, topics_of
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kpybroker.wire.messages.share_fetch import ShareFetchRequest

BYTES_MAX: Final = 50 * 1024 * 1024
NEW: Final = 0
CLOSING: Final = -1
EPOCH_MAX: Final = 2**31 - 1
STRICT: Final = 1
"""Never more than the wanted number of records (KIP-1206)."""
RENEWS: Final = 2
"""The version of ShareAcknowledge that renews locks (KIP-1222)."""


class Session:
    """Opened by its first `fetch`. Its caller forgets it when the broker refuses a request."""

    def __init__(self, broker: WireBroker, node_id: int, group: str, member_id: str) -> None:
        self.node_id = node_id
        self._broker = broker
        self._group = group
        self._member_id = member_id
        self._epoch = NEW
        self._known: frozenset[Key] = frozenset()

    @property
    def can_renew(self) -> bool:
        """Whether the broker knows renewals."""
        return self._broker.version_of(ApiKey.SHARE_ACKNOWLEDGE) >= RENEWS

    def fetch(self, wanted: frozenset[Key], max_records: int, max_wait_ms: int) -> Any:
        """Acquire records of these partitions. Raises CommandError where there is no response."""
        topic, partition = ShareFetchRequest.FetchTopic, ShareFetchRequest.FetchPartition
        added, removed = topics_of([*(wanted - self._known)]), topics_of([*(self._known - wanted)])
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=BYTES_MAX,
            max_records=max_records,
            batch_size=max_records,
            share_acquire_mode=STRICT,
            topics=[
                topic(topic_id=topic_id, partitions=[partition(partition_index=index) for index in found])
                for topic_id, found in added.items()
            ],
            forgotten_topics_data=[
                ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=found)
                for topic_id, found in removed.items()
            ],
        )
        response = self._broker.request(ApiKey.SHARE_FETCH, request)
        if response.error_code == 0:
            self._advance()
            self._known = wanted
        return response

    def acknowledge(self, offsets: Mapping[Key, Sequence[int]], kind: Ack) -> Any:
        """The same for all of these offsets. Raises CommandError where there is no response."""
        topic, partition = ShareAcknowledgeRequest.AcknowledgeTopic, ShareAcknowledgeRequest.AcknowledgePartition
        request = ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            topics=[
                topic(
                    topic_id=topic_id,
                    partitions=[
                        partition(
                            partition_index=index, acknowledgement_batches=batches(offsets[topic_id, index], kind)
                        )
                        for index in indexes
                    ],
                )
                for topic_id, indexes in topics_of([*offsets]).items()
            ],
        )
        if kind is Ack.RENEW:
            request.is_renew_ack = True
        response = self._broker.request(ApiKey.SHARE_ACKNOWLEDGE, request)
        if response.error_code == 0:
            self._advance()
        return response

    def close(self) -> None:
        """Release what this member has acquired here; a broker that does not respond does it later by itself."""
        if self._epoch == NEW:
            return
        request = ShareAcknowledgeRequest(
            group_id=self._group, member_id=self._member_id, share_session_epoch=CLOSING, topics=[]
        )
        try:
            self._broker.request(ApiKey.SHARE_ACKNOWLEDGE, request)
        except CommandError:
            pass

    def _advance(self) -> None:
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
