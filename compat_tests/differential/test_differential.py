"""Every script, in every version of its API, on real Kafka and on kpybroker: the same responses, field by field.

Which Kafka it is, 3.9.1 or 4.3.1, the script says; each is started when the first of its scripts is played. Some about
consumer groups are played a second time, on ZooKeeper; `--coordination=zookeeper` plays all of them so.

With `--broker=kafka` both sides are Kafka, each with its own files, which shows that the scripts say something that
does not depend on chance. See docs/testing/harness.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.differential.pair import Pair, skip_where_absent
from compat_tests.differential.script import Reference, Script
from compat_tests.differential.scripts import all_scripts

VERSIONS_APART = 5
EMBEDDED, ZOOKEEPER = "embedded", "zookeeper"
ON_ZOOKEEPER = (
    *("cg-features-listed", "cg-withdrawn", "cg-config-interval-changed", "cg-topics-come-and-go", "cg-uniform-three"),
    *("cg-pattern-shared", "cg-static-away", "cg-upgrade-two-members", "cg-downgrade-and-back", "cg-states-commit"),
    *("cm-listed", "cm-changed", "cm-odd-names-4", "cm-keys-one-by-one"),
)
"""Scripts that show most of what has to do with the tree: levels, configurations, topics, and what is stored."""
WITHOUT_FEATURES = (
    *("update-features", "update-features-types"),
    *("client-metrics-described", "client-metrics-altered", "client-metrics-changed"),
)
"""Scripts for a broker that supports no feature, as Kafka 3.9 and ours in its place: on ZooKeeper ours would do what
they ask for, and some would make it another broker for the next scripts.
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The newest version, and of the first script about an API the oldest and some between; with `--all-versions` all
    of each. On ZooKeeper, the newest.
    """
    options = metafunc.config.option
    supports_features = (options.broker, options.coordination) == ("kpybroker", ZOOKEEPER)
    first = {
        (script.api, script.reference): script for script in reversed(all_scripts()) if not script.is_wide
    }.values()
    cases = [
        pytest.param(script, version, options.coordination, id=f"{script.name}-v{version}", marks=_marks(script))
        for script in all_scripts()
        for version in _versions(script, is_first=script in first, every=options.all_versions)
        if not (supports_features and script.name in WITHOUT_FEATURES)
    ]
    if (options.broker, options.coordination) == ("kpybroker", EMBEDDED):
        cases += [
            pytest.param(script, script.versions[1], ZOOKEEPER, id=f"{script.name}-{ZOOKEEPER}", marks=pytest.mark.wide)
            for script in all_scripts()
            if script.name in ON_ZOOKEEPER
        ]
    metafunc.parametrize(("script", "version", "coordination"), cases)


def _marks(script: Script) -> list[pytest.MarkDecorator]:
    return [pytest.mark.wide] if script.is_wide or script.is_secured else []


def _versions(script: Script, *, is_first: bool, every: bool) -> list[int]:
    oldest, newest = script.versions
    if not is_first and not every:
        return [newest]
    return sorted({*range(oldest, newest + 1, 1 if every else VERSIONS_APART), newest})


class Pairs:
    """A pair of brokers for each reference and kind of tree, from the first script that needs it on."""

    def __init__(self, directory: Path, kind: str) -> None:
        self._directory, self._kind = directory, kind
        self._started: dict[tuple[Reference, str, bool], Pair] = {}

    def of(self, script: Script, coordination: str) -> Pair:
        key = script.reference, coordination, script.is_secured
        if key not in self._started:
            directory = self._directory / f"{len(self._started)}"
            self._started[key] = Pair(
                directory, self._kind, coordination, script.reference, is_secured=script.is_secured
            )
        return self._started[key]

    def close(self) -> None:
        for pair in self._started.values():
            pair.close()


@pytest.fixture(scope="module")
def pairs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairs]:
    started = Pairs(tmp_path_factory.mktemp("differential"), request.config.option.broker)
    yield started
    started.close()


def test_responses_equal_kafka(
    request: pytest.FixtureRequest, pairs: Pairs, script: Script, version: int, coordination: str
) -> None:
    skip_where_absent(request.config, script.reference)
    difference = pairs.of(script, coordination).compare(script, version)
    assert not difference, f"{script.name} v{version} ({script.about})\n{difference}"
