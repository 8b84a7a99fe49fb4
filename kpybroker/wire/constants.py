"""Values that have a meaning of their own in Kafka's protocol and files, and the largest int16 and int32."""

from __future__ import annotations

from typing import Final

ZERO_UUID: Final = bytes(16)
"""A topic id that is not known, or a topic without one."""

NO_TIMESTAMP: Final = -1
"""Milliseconds: there is no timestamp."""

UNKNOWN_OFFSET: Final = -1
"""There is no offset, or it is not known."""

UNKNOWN_SOFTWARE: Final = "unknown"
"""Name and version of a client that has not sent ApiVersions 3 or later (KIP-511)."""

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
