"""`feature list|upgrade|downgrade` against a broker with features, and one without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kpybroker.client.actions import features as action
from kpybroker.client.actions.features import Known, parse_levels
from kpybroker.client.connect.errors import CommandError
from kpybroker.testing import Broker
from tests.client.conftest import Run
from tests.support.programs.command_line import Result, invoke


@pytest.fixture(scope="module")
def with_features() -> Iterator[str]:
    """The address of a broker of this process with its features: group, share and transaction version."""
    with Broker(in_thread=True) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def feature(with_features: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a `feature` command against it."""

    def with_address(*arguments: str, stdin: bytes = b"") -> Result:
        return invoke(monkeypatch, "feature", *arguments, "-b", with_features, stdin=stdin)

    return with_address


def level(feature: Run) -> tuple[int, int]:
    """(finalized level of group.version, epoch)."""
    found = feature("list", "--format", "json").json
    row, shares, streams, transactions = found["features"]
    assert (shares["feature"], shares["supported"]) == ("share.version", [0, 1])
    assert (streams["feature"], streams["supported"]) == ("streams.version", [0, 1])
    assert (transactions["feature"], transactions["supported"]) == ("transaction.version", [0, 2])
    assert (row["feature"], row["supported"], row["brokers"]) == ("group.version", [0, 1], {"0": [0, 1]})
    return row["finalized"], found["epoch"]


def test_levels_are_listed_lowered_and_raised(feature: Run) -> None:
    assert level(feature) == (1, 0)
    rows = [line.split() for line in feature("list").text.splitlines()[-4:]]
    assert rows == [
        ["group.version", "1", "0", "to", "1"],
        ["share.version", "1", "0", "to", "1"],
        ["streams.version", "1", "0", "to", "1"],
        ["transaction.version", "2", "0", "to", "2"],
    ]
    planned = feature("downgrade", "group.version=0", "--dry-run")
    assert (planned.code, planned.text.split()[-3:]) == (0, ["group.version", "1", "0"])
    assert "nothing was changed" in planned.err
    assert level(feature) == (1, 0)
    done = feature("downgrade", "group.version=0", "--format", "json")
    assert done.json == [{"feature": "group.version", "from": 1, "to": 0}]
    assert level(feature) == (0, 1)
    assert feature("upgrade", "group.version=1").code == 0
    assert feature("downgrade", "group.version=0", "--unsafe").code == 0
    assert feature("upgrade", "group.version=1").code == 0
    assert level(feature) == (1, 4)


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (
            ("upgrade", "group.version=2"),
            "version 2 for feature group.version. Local controller 0 only supports versions 0-1",
        ),
        (
            ("upgrade", "metadata.version=30"),
            "feature metadata.version. Local controller 0 does not support this feature.",
        ),
        (("upgrade", "group.version=0"), "without setting the upgrade type to either safe or unsafe downgrade"),
        (("downgrade", "other=0"), "Feature other not found"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(feature: Run, arguments: tuple[str, ...], cause: str) -> None:
    before = level(feature)
    refused = feature(*arguments)
    assert refused.code == 1
    said, fix = refused.err.splitlines()
    assert said.startswith("kpybroker: The update failed for all features since the following feature had an error: ")
    assert cause in said
    assert said.endswith("(INVALID_UPDATE_VERSION)")
    assert fix == "fix: kpybroker feature list shows the levels that the brokers support"
    assert level(feature) == before


@pytest.mark.parametrize(
    "text", ["group.version", "=1", "group.version=", "group.version=one", "a=-1", "a=32768", "a=1=2"]
)
def test_what_is_no_level_is_refused_before_the_cluster_is_asked(feature: Run, text: str) -> None:
    refused = feature("upgrade", text)
    assert refused.code == 2
    assert "is no feature with its level" in refused.err
    assert "write NAME=LEVEL, such as group.version=1" in refused.err


def test_a_feature_is_named_once() -> None:
    with pytest.raises(CommandError, match="a is named twice"):
        parse_levels(["a=1", "b=2", "a=1"])
    assert parse_levels(["a=1", "b=0"]) == {"a": 1, "b": 0}


def test_a_level_that_one_broker_does_not_support_is_not_common() -> None:
    known = {1: Known({"a": (0, 3), "b": (0, 1)}, {}, 0), 2: Known({"a": (1, 2), "c": (0, 1)}, {}, 0)}
    assert action._row("a", known, 0)["supported"] == [1, 2]
    assert action._row("b", known, 0) == {
        "feature": "b",
        "finalized": 0,
        "supported": None,
        "brokers": {"1": [0, 1], "2": None},
    }


@pytest.fixture
def without_features(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a command against a broker in the place of Kafka 3.9."""
    with Broker(in_thread=True, kafka_version="3.9") as broker:

        def with_address(*arguments: str, stdin: bytes = b"") -> Result:
            return invoke(monkeypatch, *arguments, "-b", broker.bootstrap_servers, stdin=stdin)

        yield with_address


def test_a_broker_without_features(without_features: Run) -> None:
    run = without_features
    listed = run("feature", "list")
    assert (listed.code, listed.out) == (0, b"")
    assert listed.err.splitlines() == ["the brokers support no features", "epoch 0"]
    assert run("feature", "list", "--format", "json").json == {"epoch": 0, "features": []}
    refused = run("feature", "upgrade", "group.version=1")
    assert refused.code == 1
    assert "the provided feature is not supported (INVALID_REQUEST)" in refused.err  # in Kafka 3.9's words


def test_a_feature_that_no_broker_has(feature: Run) -> None:
    refused = feature("upgrade", "kraft.version=1")
    assert refused.code == 1
    assert "Local controller 0 does not support this feature" in refused.err
