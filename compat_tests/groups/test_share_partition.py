"""A share partition's machine next to Kafka 4.3.1's own class `SharePartition`: random scripts, and our scenarios."""

from __future__ import annotations

import pytest

from compat_tests.deps import ROOT
from compat_tests.groups.share_partitions import ask_kafka, compared
from compat_tests.groups.share_scripts import random_script

SCENARIOS = ROOT / "tests" / "core" / "share" / "scenarios"
SCRIPTS = 3_000


@pytest.mark.wide
def test_random_scripts_do_the_same_on_both() -> None:
    scripts = [random_script(seed) for seed in range(SCRIPTS)]
    results = [compared(*pair) for pair in zip(scripts, ask_kafka([one.steps for one in scripts]), strict=True)]
    steps, differences = sum(steps for steps, _ in results), [difference for _, difference in results if difference]
    print(f"{steps} of {sum(len(one.steps) for one in scripts)} steps compared")
    assert not differences, differences[0]
    assert steps > 24 * SCRIPTS


@pytest.mark.wide
def test_kafka_does_what_our_scenarios_say() -> None:
    scripts, expected = [], []
    for path in sorted(SCENARIOS.glob("*.txt")):
        for block in path.read_text().strip().split("\n\n"):
            steps, seen = (part.splitlines() for part in block.split("----\n"))
            scripts.append(steps[1:])
            expected.append([steps[0], *seen])
    seen_on_kafka = ask_kafka(scripts)
    assert [[title[0], *seen] for title, seen in zip(expected, seen_on_kafka, strict=True)] == expected
