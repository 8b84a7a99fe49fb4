"""A broker of this folder's own, and commands against it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Protocol

import pytest

from kpybroker.client.connect.settings import ENVIRONMENT
from tests.support.programs.command_line import Result, invoke
from tests.support.programs.samples import dev_broker


class Run(Protocol):
    """`run(*arguments, stdin=b"")`."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result: ...


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a `kpybroker dev` that the whole folder shares; each test has its own names."""
    with dev_broker(tmp_path_factory.mktemp("client") / "data") as broker:
        yield broker.bootstrap


@pytest.fixture
def run(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command against the broker."""
    monkeypatch.setenv(ENVIRONMENT, bootstrap)

    def with_address(*arguments: str, stdin: bytes = b"") -> Result:
        return invoke(monkeypatch, *arguments, stdin=stdin)

    return with_address


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"t-{uuid.uuid4().hex[:8]}"
