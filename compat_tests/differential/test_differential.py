"""Every script, in every version of its API, on real Kafka and on kpybroker: the same responses, field by field.

Which Kafka it is, 3.9.1 or 4.3.1, the script says; each is started when the first of its scripts is played.

With `--broker=kafka` both sides are Kafka, each with its own files, which shows that the scripts say something that
does not depend on chance. See docs/testing/index.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.script import Reference, Script
from compat_tests.differential.scripts import all_scripts
from kpybroker.config.keys.own import KAFKA_VERSIONS
from kpybroker.wire.api import ApiKey

VERSIONS_APART = 5


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The oldest, the newest and some versions between; `--all-versions` takes every one."""
    every = metafunc.config.getoption("--all-versions")
    cases = [
        pytest.param(script, version, id=f"{script.name}-v{version}")
        for script in all_scripts()
        for version in _versions(script, every)
    ]
    metafunc.parametrize(("script", "version"), cases)


def _versions(script: Script, every: bool) -> list[int]:
    oldest, newest = script.versions
    return sorted({*range(oldest, newest + 1, 1 if every else VERSIONS_APART), newest})


class Pairs:
    """A pair of brokers for each reference, from the first script that needs it on."""

    def __init__(self, directory: Path, kind: str, coordination: str) -> None:
        self._directory, self._kind, self._coordination = directory, kind, coordination
        self._started: dict[Reference, Pair] = {}

    def of(self, reference: Reference) -> Pair:
        if reference not in self._started:
            directory = self._directory / reference.value
            self._started[reference] = Pair(directory, self._kind, self._coordination, reference)
        return self._started[reference]

    def close(self) -> None:
        for pair in self._started.values():
            pair.close()


@pytest.fixture(scope="module")
def pairs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairs]:
    options = request.config.option
    started = Pairs(tmp_path_factory.mktemp("differential"), options.broker, options.coordination)
    yield started
    started.close()


def is_raised_on_zookeeper(options: argparse.Namespace, script: Script) -> bool:
    """Whether the script is of a Kafka without features, and would finalize one of kpybroker's for all after it."""
    on_zookeeper = (options.broker, options.coordination) == ("kpybroker", "zookeeper")
    return on_zookeeper and (script.api, script.reference) == (ApiKey.UPDATE_FEATURES, Reference.KAFKA_3_9)


def test_responses_equal_kafka(request: pytest.FixtureRequest, pairs: Pairs, script: Script, version: int) -> None:
    release = request.config.getoption("--kafka-version")
    if is_raised_on_zookeeper(request.config.option, script):
        pytest.skip("kpybroker may raise the level of its features there, and finalizes none unasked")
    if script.reference is Reference.KAFKA_4_3 and release not in (None, KAFKA_VERSIONS[-1]):
        pytest.skip(f"a broker in the place of Kafka {release} has not what is compared")
    difference = pairs.of(script.reference).compare(script, version)
    assert not difference, f"{script.name} v{version} ({script.about})\n{difference}"
