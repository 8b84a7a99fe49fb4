"""`kafka-features` of 3.9.1 and of 4.x, against a broker with features and one without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher, StartBroker
from compat_tests.support.tools import VERSIONS, Result, Tools
from kpybroker.testing import Broker as OwnBroker

FAILED = "The update failed for all features since the following feature had an error: Invalid update version"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A kpybroker that has finalized the newest levels: group.version 1 of 0 to 1, transaction.version 2 of 0 to 2."""
    with OwnBroker(in_thread=True) as broker:
        yield broker.bootstrap_servers


def features(version: str, bootstrap: str, *words: str) -> Result:
    return Tools(version, bootstrap).run("features", *words, check=False)


def described(version: str, bootstrap: str) -> tuple[list[str], int]:
    """Words of the line of group.version, without the epoch; and the epoch. The other lines stay as they are."""
    groups, *others = (line.split() for line in features(version, bootstrap, "describe").lines)
    newest = {"share.version": "1", "streams.version": "1", "transaction.version": "2"}
    for words, (name, most) in zip(others, newest.items(), strict=True):
        assert words[:-1] == [
            *("Feature:", name, "SupportedMinVersion:", "0"),
            *("SupportedMaxVersion:", most, "FinalizedVersionLevel:", most, "Epoch:"),
        ]
    assert all(groups[-2:] == one[-2:] for one in others)
    return groups[:-2], int(groups[-1])


@pytest.mark.parametrize("version", VERSIONS)
def test_features_are_described_lowered_and_raised(version: str, bootstrap: str) -> None:
    before, epoch = described(version, bootstrap)
    assert before == [
        *("Feature:", "group.version"),
        *("SupportedMinVersion:", "0", "SupportedMaxVersion:", "1", "FinalizedVersionLevel:", "1"),
    ]
    lowered = features(version, bootstrap, "downgrade", "--feature", "group.version=0", "--dry-run")
    assert (lowered.code, lowered.lines) == (0, ["group.version can be downgraded to 0."])
    assert described(version, bootstrap) == (before, epoch)
    lowered = features(version, bootstrap, "downgrade", "--feature", "group.version=0")
    assert (lowered.code, lowered.lines) == (0, ["group.version was downgraded to 0."])
    words, after = described(version, bootstrap)
    assert (words[-1], after) == ("0", epoch + 1)
    raised = features(version, bootstrap, "upgrade", "--feature", "group.version=1")
    assert (raised.code, raised.lines) == (0, ["group.version was upgraded to 1."])
    assert described(version, bootstrap) == (before, epoch + 2)
    disabled = features(version, bootstrap, "disable", "--feature", "group.version", "--dry-run")
    assert (disabled.code, disabled.lines) == (0, ["group.version can be disabled."])


def test_transactions_are_lowered_and_raised(bootstrap: str) -> None:
    """By the tool of 4.x; 3.9.1's does the same."""
    for how, words, level in (("downgrade", "downgraded", 0), ("upgrade", "upgraded", 1), ("upgrade", "upgraded", 2)):
        changed = features("4.x", bootstrap, how, "--feature", f"transaction.version={level}")
        assert (changed.code, changed.lines) == (0, [f"transaction.version was {words} to {level}."])
        (line,) = (line for line in features("4.x", bootstrap, "describe").lines if "transaction.version" in line)
        assert line.split()[4:8] == ["SupportedMaxVersion:", "2", "FinalizedVersionLevel:", str(level)]
    refused = features("4.x", bootstrap, "upgrade", "--feature", "transaction.version=3")
    assert refused.lines == [
        f"Could not upgrade transaction.version to 3. {FAILED} 3 for feature transaction.version. Local controller 0 "
        "only supports versions 0-2"
    ]


def test_what_4_refuses_in_its_words(bootstrap: str) -> None:
    refused = features("4.x", bootstrap, "upgrade", "--feature", "group.version=2")
    assert refused.code == 1
    assert refused.lines == [
        f"Could not upgrade group.version to 2. {FAILED} 2 for feature group.version. Local controller 0 only supports "
        "versions 0-1"
    ]
    assert refused.err.strip() == "1 out of 1 operation(s) failed."
    whole = features("4.x", bootstrap, "upgrade", "--release-version", "4.0-IV3")
    assert whole.code == 1
    reason = "for feature metadata.version. Local controller 0 does not support this feature."
    assert [reason in line for line in whole.lines] == [True] * len(whole.lines)
    assert len(whole.lines) > 1


def test_what_3_9_refuses_in_its_words(bootstrap: str) -> None:
    refused = features("3.9.1", bootstrap, "upgrade", "--feature", "group.version=1", "--feature", "other=1")
    assert refused.code == 1
    assert refused.lines == [
        "Could not upgrade group.version to 1. Can not upgrade a finalized feature from existing versionLevel:1 to the "
        "same value.",
        "Could not upgrade other to 1. Could not apply finalized feature update because the provided feature is not "
        "supported.",
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_without_features(version: str, own_broker: StartBroker, launcher: Launcher) -> None:
    """None is described, and none can be raised: as in Kafka 3.9 with ZooKeeper."""
    broker = own_broker(**({} if launcher.kind == "kafka" else {"kpybroker_kafka_version": "3.9"}))
    assert features(version, broker.bootstrap, "describe").lines == []
    refused = features(version, broker.bootstrap, "upgrade", "--feature", "group.version=1")
    assert (refused.code, refused.err.strip()) == (1, "1 out of 1 operation(s) failed.")
    (line,) = refused.lines
    assert line.startswith("Could not upgrade group.version to 1. ")
