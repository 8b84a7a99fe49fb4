"""`kafka-configs --entity-type groups` of 4.x, with the words that it has at Kafka 4.3.1; 3.9.1 has no such type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.support.command_line import CommandLine
from compat_tests.support.tools import Result, Tools
from kpybroker.config.groups.keys import GROUP_KEYS
from kpybroker.testing import Broker as OwnBroker

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
OF_GROUPS = ("--entity-type", "groups")
OF_G = (*OF_GROUPS, "--entity-name", "g")
DONE = (0, ["Completed updating config for group g."])


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A kpybroker, which has finalized group.version 1 as any new one."""
    with OwnBroker(in_thread=True) as broker:
        yield broker.bootstrap_servers


def configs(bootstrap: str, *words: str, version: str = "4.x") -> Result:
    return Tools(version, bootstrap).run("configs", *words, check=False)


def said(bootstrap: str, *words: str) -> tuple[int, list[str]]:
    result = configs(bootstrap, *words)
    return result.code, result.lines


def test_a_group_is_configured_described_and_reset(bootstrap: str) -> None:
    assert said(bootstrap, "--describe", *OF_GROUPS) == (0, [])
    unknown = "The group 'g' doesn't exist and doesn't have dynamic config."
    assert said(bootstrap, "--describe", *OF_G) == (0, [unknown])
    assert said(bootstrap, "--alter", *OF_G, "--add-config", f"{HEARTBEAT}=7000,{SESSION}=50000") == DONE
    set_here = [
        f"  {name}={value} sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{name}={value}, "
        for name, value in ((HEARTBEAT, 7000), (SESSION, 50000))
    ]
    for words in (OF_G, ("--group", "g"), OF_GROUPS):
        code, (title, *lines) = said(bootstrap, "--describe", *words)
        assert (code, title, len(lines)) == (0, "Dynamic configs for group g are:", len(set_here))
        assert all(map(str.startswith, lines, set_here)), lines
    code, (title, *lines) = said(bootstrap, "--describe", "--all", *OF_G)
    assert (code, title, len(lines)) == (0, "All configs for group g are:", len(GROUP_KEYS))
    lines = [line for line in lines if line.startswith("  consumer.")]
    assert "_CONFIG:group.consumer.assignment.interval.ms=" in lines[0]
    assert all(map(str.startswith, lines[1:], set_here)), lines
    assert said(bootstrap, "--alter", *OF_G, "--delete-config", f"{HEARTBEAT},{SESSION}") == DONE
    assert said(bootstrap, "--describe", *OF_GROUPS) == (0, [])


def test_our_command_and_kafkas_see_the_same(bootstrap: str) -> None:
    cli = CommandLine(bootstrap)
    cli.run("config", "set", "group", "g", f"{HEARTBEAT}=7000")
    code, (title, line) = said(bootstrap, "--describe", *OF_GROUPS)
    assert (code, title) == (0, "Dynamic configs for group g are:")
    assert line.startswith(f"  {HEARTBEAT}=7000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{HEARTBEAT}=7000, ")
    assert said(bootstrap, "--alter", *OF_G, "--add-config", f"{SESSION}=50000") == DONE
    assert {row["key"]: row["value"] for row in cli.json("config", "list", "group")} == {
        HEARTBEAT: "7000",
        SESSION: "50000",
    }
    cli.run("config", "unset", "group", "g", HEARTBEAT, SESSION)
    assert said(bootstrap, "--describe", *OF_GROUPS) == (0, [])


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        (f"{HEARTBEAT}=1", f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms"),
        ("no=1", "Unknown group config name: no"),
        (
            "streams.num.standby.replicas=3",
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
    ],
)
def test_what_is_refused_in_its_words(bootstrap: str, pair: str, text: str) -> None:
    result = configs(bootstrap, "--alter", *OF_G, "--add-config", pair)
    assert result.code == 1
    assert text in result.err


def test_3_9_1_knows_no_such_type(bootstrap: str) -> None:
    result = configs(bootstrap, "--describe", *OF_GROUPS, version="3.9.1")
    assert result.code == 1
    assert "Invalid entity type groups" in result.err
