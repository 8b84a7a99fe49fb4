"""The differences from Kafka 4.3.1 that are meant; see `allowed.py` of the folder above."""

from __future__ import annotations

from compat_tests.differential.allowed import Allowed

ALLOWED_NEXT_TO_4: tuple[Allowed, ...] = ()
