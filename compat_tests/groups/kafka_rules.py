"""What Kafka 4.3.1's own classes decide about consumer groups: `GroupRules.java`, in one JVM for many questions."""

from __future__ import annotations

from collections.abc import Iterable

from compat_tests.deps import ROOT, jars_dir
from compat_tests.support.tools import JARS, run_process

RULES = ROOT / "compat_tests" / "workers" / "GroupRules.java"


def ask_kafka(commands: Iterable[str]) -> list[str]:
    """One line for each command."""
    asked = list(commands)
    java = ["java", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]
    lines = run_process(
        [*java, "-cp", f"{jars_dir(JARS['4.x'])}/*", str(RULES)], "\n".join(asked) + "\n"
    ).out.splitlines()
    assert len(lines) == len(asked)
    return lines
