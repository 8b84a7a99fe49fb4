"""The examples of the reference of `kpybroker.testing`: each public name has one, and all of them pass."""

from __future__ import annotations

import subprocess
from types import ModuleType

import pytest

from kpybroker import pytest_plugin
from tests.support.programs.pytest_runs import pytest_command, pytest_environment
from tests.support.programs.samples import SAMPLES
from tests.support.programs.site import public, reference_of_testing

FILES = ("test_life.py", "test_waiting.py", "test_looking.py", "test_faults.py", "test_cluster.py", "test_fixtures.py")
"""With conftest.py next to them."""
RUN_S_MAX = 300


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    return reference_of_testing()


def test_every_public_name_has_an_example_and_every_example_a_public_name(reference: ModuleType) -> None:
    shown = {
        {"Aio": "aio.Aio", "ClientMetrics": "look.ClientMetrics", "ClientMetric": "look.ClientMetric"}.get(head, head)
        + (f".{rest}" if rest else "")
        for head, _, rest in (name.partition(".") for name in reference.examples())
    }
    assert shown == public(reference)


def test_every_fixture_of_the_plugin_is_found(reference: ModuleType) -> None:
    assert {node.name for node in reference.fixtures()} == {
        name for name in pytest_plugin.__all__ if not name.startswith("pytest_")
    }


def test_the_examples_pass() -> None:
    """All in one run: to start pytest for each file costs as much as its brokers."""
    done = subprocess.run(
        pytest_command("-q", "--tb=short", *FILES),
        cwd=SAMPLES / "testing" / "reference",
        env=pytest_environment(),
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout
