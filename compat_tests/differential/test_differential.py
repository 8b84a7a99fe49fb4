"""Every script, in every version of its API, on real Kafka 3.9.1 and on kpybroker: the same responses, field by field.

With `--broker=kafka` both sides are Kafka, each with its own files, which shows that the scripts say something that
does not depend on chance. See docs/testing/index.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.script import Script
from compat_tests.differential.scripts import all_scripts

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


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = request.config.option
    started = Pair(tmp_path_factory.mktemp("differential"), options.broker, options.coordination)
    yield started
    started.close()


def test_responses_equal_kafka(pair: Pair, script: Script, version: int) -> None:
    difference = pair.compare(script, version)
    assert not difference, f"{script.name} v{version} ({script.about})\n{difference}"
