"""The topics that a broker knows, for tests of what requests name."""

from __future__ import annotations

from kpybroker.control.rules.entities import SeenTopics
from kpybroker.wire.constants import ZERO_UUID

IDS = {"orders": bytes(15) + b"\x01", "others": bytes(15) + b"\x02"}
UNKNOWN_ID = bytes(15) + b"\x09"


class Known:
    """`orders` and `others`."""

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, known in IDS.items() if known == topic_id), None)

    def topic_id(self, topic: str) -> bytes:
        return IDS.get(topic, ZERO_UUID)


def known() -> SeenTopics:
    return SeenTopics(Known())
