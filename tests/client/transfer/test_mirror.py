"""`mirror` between two brokers: at least once, resumable by its group."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kpybroker.client.connect.settings import ENVIRONMENT
from tests.client.conftest import Run
from tests.support.programs.command_line import invoke
from tests.support.programs.samples import dev_broker


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of another broker."""
    with dev_broker(tmp_path_factory.mktemp("other") / "data") as broker:
        yield broker.bootstrap


@pytest.fixture
def there(other: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command against the other broker."""
    return lambda *arguments, stdin=b"": invoke(monkeypatch, *arguments, "-b", other, stdin=stdin)


@pytest.fixture
def topic(run: Run, there: Run, name: str) -> str:
    """In both brokers, with two partitions."""
    for each in (run, there):
        each("topic", "create", name, "-p", "2")
    return name


def values(there: Run, topic: str) -> list[str]:
    return sorted(there("topic", "consume", topic, "-e", "-f", "%p %k=%v\\n").lines)


def test_a_second_run_goes_on_where_the_first_ended(run: Run, there: Run, other: str, topic: str) -> None:
    run("topic", "produce", topic, "-p", "1", "-K:", stdin=b"a:1\nb:2\n")
    first = run("mirror", topic, "--to", other, "-g", topic, "-e")
    assert (first.code, first.err) == (0, "copied 2 records of 1 partition\n")
    assert values(there, topic) == ["1 a=1", "1 b=2"]
    run("topic", "produce", topic, "-p", "0", "-K:", stdin=b"c:3\n")
    second = run("mirror", topic, "--to", other, "-g", topic, "-e")
    assert (second.code, second.err) == (0, "copied 1 record of 1 partition\n")
    assert values(there, topic) == ["0 c=3", "1 a=1", "1 b=2"]
    again = run("mirror", topic, "--to", other, "-g", f"{topic}-anew", "-n", "3")
    assert again.code == 0
    assert len(values(there, topic)) == 6, "another group begins at the start"


def test_what_is_not_acknowledged_is_not_committed(run: Run, there: Run, other: str, topic: str) -> None:
    there("config", "set", "topic", topic, "max.message.bytes=200")
    run("topic", "produce", topic, "-p", "0", stdin=b"short\n" + b"x" * 1000 + b"\n")
    refused = run("mirror", topic, "--to", other, "-g", topic, "-e")
    assert refused.code == 1
    assert f"the record of {topic}-0 at offset " in refused.err
    there("config", "set", "topic", topic, "max.message.bytes=2000")
    assert run("mirror", topic, "--to", other, "-g", topic, "-e").code == 0
    assert len([line for line in values(there, topic) if "xxx" in line]) == 1


@pytest.mark.parametrize(
    ("options", "cause"),
    [((), "the target cluster is not named"), (("--to", "SELF"), "source and target are the same cluster")],
)
def test_a_target_is_another_cluster(
    run: Run, bootstrap: str, topic: str, options: tuple[str, ...], cause: str
) -> None:
    found = run("mirror", topic, *(bootstrap if word == "SELF" else word for word in options))
    assert (found.code, cause in found.err) == (2, True)


def test_a_topic_that_is_not_there(run: Run, other: str, name: str) -> None:
    run("topic", "create", name)
    found = run("mirror", name, "--to", other)
    assert found.code == 1
    assert f"topic {name}: " in found.err


def test_it_needs_the_broker_to_be_there(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    found = run("mirror", name, "--to", "127.0.0.1:1", "--timeout", "5")
    assert found.code == 1
    assert "no broker can be reached" in found.err
