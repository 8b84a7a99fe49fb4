"""What `tests/config` takes for the keys of two releases of Kafka is what their jars define."""

from __future__ import annotations

import pytest

from compat_tests.config.kafka_keys import defined
from tests.config.keys.kafka_keys import FILES


@pytest.mark.wide
@pytest.mark.parametrize("release", FILES)
def test_the_recorded_keys_are_those_of_the_jars(release: str) -> None:
    assert defined(release) == FILES[release].read_text(), "run python -m compat_tests.config.kafka_keys"
