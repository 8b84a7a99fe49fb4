"""What Kafka 4.3.1's own classes decide about consumer groups: `GroupRules.java`, in one JVM for many questions."""

from __future__ import annotations

from collections.abc import Iterable

from compat_tests.deps import ROOT
from compat_tests.support.tools import program_command, run_process

RULES = ROOT / "compat_tests" / "workers" / "GroupRules.java"


def ask_kafka(commands: Iterable[str]) -> list[str]:
    """One line for each command."""
    asked = list(commands)
    program = program_command("4.x", RULES, ["-Dfile.encoding=UTF-8"])
    lines = run_process(program, "\n".join(asked) + "\n").out.splitlines()
    assert len(lines) == len(asked)
    return lines
