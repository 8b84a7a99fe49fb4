"""Settings on real Kafka 4.3.1 and on kpybroker in its place (`--kafka-version 4.3`): the same responses.

Without that key kpybroker has the defaults and rules of Kafka 3.9.1, next to which `scripts/configs.py` is played.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.differential.kafka_4.configs import ALLOWED_OF_CONFIGS, SAME_KEYS, SCRIPTS
from compat_tests.differential.pair import Pair
from compat_tests.differential.script import Reference, Script
from compat_tests.support.services import KAFKA_VERSION


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = request.config.option
    directory = tmp_path_factory.mktemp("configs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KAFKA_VERSION, Reference.KAFKA_4_3.value)
        started = Pair(directory, options.broker, options.coordination, Reference.KAFKA_4_3, changes=SAME_KEYS)
    yield started
    started.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_settings_equal_kafka_4(pair: Pair, script: Script) -> None:
    newest = script.versions[1]
    difference = pair.compare(script, newest, ALLOWED_OF_CONFIGS)
    assert not difference, f"{script.name} v{newest} ({script.about})\n{difference}"
