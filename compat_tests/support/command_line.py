"""`kpybroker topic ...` and the others, as a user runs them, against any broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from compat_tests.deps import ROOT
from compat_tests.support.tools import Result, run_process
from tests.support.programs.forks import COMMANDS, QUICK_JVMS, can_fork, forks

DEADLINE_S = 120.0


class CommandLine:
    """Commands with the address of one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @property
    def environment(self) -> dict[str, str]:
        return {"KPYBROKER_BOOTSTRAP_SERVERS": self.bootstrap, "PYTHONPATH": str(ROOT)}

    def run(self, *arguments: str, stdin: str | bytes | None = None, code: int | None = 0) -> Result:
        """Run a command to its end; `code` is the exit code it must have, None for any."""
        environment = {**os.environ, "KPYBROKER_BOOTSTRAP_SERVERS": self.bootstrap}
        if QUICK_JVMS in environment and can_fork(environment, COMMANDS):
            result = _forked(arguments, stdin, environment)
        else:
            command = [sys.executable, "-m", "kpybroker", *arguments]
            result = run_process(command, stdin, check=False, deadline_s=DEADLINE_S, env=self.environment)
        assert code is None or result.code == code, str(result)
        assert "Traceback" not in result.err, str(result)
        return result

    def json(self, *arguments: str, code: int | None = 0) -> Any:
        """What the command prints as JSON."""
        return json.loads(self.run(*arguments, "--format", "json", code=code).out)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """A command that runs until it is stopped, with its output in pipes."""
        return subprocess.Popen(
            [sys.executable, "-m", "kpybroker", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **self.environment},
            **options,
        )


def _forked(arguments: Sequence[str], stdin: str | bytes | None, environment: Mapping[str, str]) -> Result:
    code, out, err = forks(COMMANDS).run(arguments, stdin, environment, DEADLINE_S)
    assert code is not None, f"no end within {DEADLINE_S} s: {arguments}\n{out}\n{err}"
    return Result(["kpybroker", *arguments], code, out, err)
