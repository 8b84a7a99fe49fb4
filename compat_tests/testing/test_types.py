"""mypy and pyright find each wrong call of the test kit, on its line, and nothing wrong in the right ones."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from compat_tests import deps
from compat_tests.testing.typed_calls import ARGUMENTS, IMPORTS, RIGHT, WRONG
from kpybroker.testing import Broker, Cluster, TestingError

CHECK_S_MAX = 600
PYPROJECT = """
[tool.mypy]
strict = true

[[tool.mypy.overrides]]
module = ["kafka.*", "aiokafka.*"]
ignore_missing_imports = true

[tool.pyright]
typeCheckingMode = "strict"
reportUnknownMemberType = false
reportMissingTypeStubs = false
reportUnusedImport = false
"""
"""The settings of a strict project whose client libraries have no types of their own."""

NOT_OF_THE_KIT = {
    'Broker(kafka_version="3.10")': "nothing",  # until it is started
    "Cluster(num_brokers=3)": "nothing",  # but a warning
    'print(kafka_requests()[0].api == "Prodcue")': "nothing",
    'print(kafka_broker.groups()["g"].state == "stable")': "KeyError",
    'kafka_faults.all()["first"]': "TypeError",
    'kafka_broker.consumer("g").subscribe("orders")': "TypeError",
    'kafka_broker.producer().send("orders", b"value")': "AttributeError",
    'kafka_producer.send("orders", b"value")': "AttributeError",
}
"""What the kit does not refuse, and what refuses it."""
FILES = ("right.py", "wrong.py", "typed.py")
SAMPLE = deps.ROOT / "docs" / "samples" / "testing" / "typed.py"
Errors = dict[str, dict[int, list[str]]]
"""File -> line -> messages."""


def _program(calls: tuple[str, ...]) -> tuple[str, list[int]]:
    """A function for each call; the number of each call's line."""
    lines = IMPORTS.strip().splitlines()
    at: list[int] = []
    for number, call in enumerate(calls):
        lines += ["", "", f"async def test_{number}(", *ARGUMENTS.strip("\n").splitlines(), ") -> None:", f"    {call}"]
        at.append(len(lines))
    return "\n".join(lines) + "\n", at


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=CHECK_S_MAX)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def mypy(project: Path) -> Errors:
    cache = str(project / ".cache")
    output = _run(*(sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", cache, *FILES), cwd=project)
    found: Errors = {}
    for line in output.splitlines():
        matched = re.fullmatch(r"(.+?):(\d+): (error|note): (.*)", line)
        assert matched, line
        if matched[3] == "error":
            found.setdefault(matched[1], {}).setdefault(int(matched[2]), []).append(matched[4])
    return found


def pyright(project: Path) -> Errors:
    node = shutil.which("node")
    assert node is not None, "make test-deps installs it"
    own = ("--pythonpath", sys.executable, "--outputjson")
    report = json.loads(_run(node, str(deps.pyright()), *own, *FILES, cwd=project))
    found: Errors = {}
    for one in report["generalDiagnostics"]:
        if one["severity"] == "error":
            lines = found.setdefault(Path(one["file"]).name, {})
            lines.setdefault(one["range"]["start"]["line"] + 1, []).append(one["message"])
    return found


@pytest.mark.parametrize(
    "checker", [pytest.param(mypy, id="mypy"), pytest.param(pyright, id="pyright", marks=pytest.mark.wide)]
)
def test_wrong_calls_are_errors_before_the_run(tmp_path: Path, checker: Callable[[Path], Errors]) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    shutil.copy(SAMPLE, tmp_path)
    expected = {}
    for name, calls in (("right.py", RIGHT), ("wrong.py", WRONG)):
        text, expected[name] = _program(calls)
        (tmp_path / name).write_text(text)
    found = checker(tmp_path)
    assert found.keys() == {"wrong.py"}, found
    missed = [call for call, line in zip(WRONG, expected["wrong.py"], strict=True) if line not in found["wrong.py"]]
    assert missed == []
    assert sorted(found["wrong.py"]) == expected["wrong.py"]


@pytest.fixture(scope="module")
def arguments() -> Iterator[dict[str, Any]]:
    """Those of `ARGUMENTS`, by name."""
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(topics=["orders"], in_thread=True))
        cluster = stack.enter_context(Cluster(3, in_thread=True))
        consumer = broker.consumer()
        stack.callback(consumer.close)
        yield {
            "kafka_broker": broker,
            "kafka_cluster": cluster,
            "kafka_producer": broker.producer(),
            "kafka_consumer": consumer,
            "kafka_admin": broker.admin(),
            "kafka_faults": broker.faults,
            "kafka_clock": broker.clock,
            "kafka_requests": broker.requests,
            "kafka_broker_factory": Broker,
            "kafka_group_protocol": "classic",
            "kafka_topic": "orders",
            "fault": broker.faults.observe("Fetch", expect_unused=True),
            "lines": ["one"],
        }


def test_a_wrong_call_is_refused_at_run_time_too(arguments: dict[str, Any]) -> None:
    """By the kit with a fix, but for what is wrong in Python itself, or in a client."""
    text, _ = _program(WRONG)
    functions: dict[str, Any] = {}
    exec(text, functions)
    others = {}
    for number, call in enumerate(WRONG):
        try:
            with warnings.catch_warnings(action="ignore"):
                asyncio.run(functions[f"test_{number}"](**arguments))
        except TestingError:
            continue
        except Exception as error:
            others[call] = type(error).__name__
        else:
            others[call] = "nothing"
    assert others == NOT_OF_THE_KIT


def test_there_are_fifty_of_each_and_no_call_twice() -> None:
    for calls in (RIGHT, WRONG):
        assert len(calls) >= 50
        assert len(set(calls)) == len(calls)
    assert set(RIGHT).isdisjoint(WRONG)
