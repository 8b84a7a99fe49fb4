"""Where the configuration of a command is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import DEFAULT_BOOTSTRAP, ENVIRONMENT, Connection, load, parse_address


def test_the_address_is_from_the_option_then_the_file_then_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nclient.id=me\n")
    monkeypatch.setenv(ENVIRONMENT, "env:1")
    assert load(Connection("option:1", str(file))).bootstrap == "option:1"
    assert load(Connection(None, str(file))).bootstrap == "file:1"
    assert load(Connection(None, str(file), ("bootstrap.servers=x:1",))).bootstrap == "x:1"
    assert load(Connection()).bootstrap == "env:1"
    monkeypatch.delenv(ENVIRONMENT)
    assert load(Connection()).bootstrap == DEFAULT_BOOTSTRAP


def test_an_option_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=all\nlinger.ms=5\n")
    settings = load(Connection(None, str(file), ("acks=1",)))
    assert settings.properties == {"acks": "1", "linger.ms": "5"}
    assert settings.source == f"{file} and -X"
    client = settings.client(linger_ms=0, group_id="g")
    assert (client["linger.ms"], client["group.id"], client["log_level"]) == (0, "g", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h", ("h", 9092)),
        ("h:1", ("h", 1)),
        ("PLAINTEXT://h:1", ("h", 1)),
        ("[::1]:5", ("::1", 5)),
        ("[::1]", ("::1", 9092)),
        ("fe80::1", ("fe80::1", 9092)),
    ],
)
def test_an_address(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", ":1", "h:x", "h:0", "h:65536", "h:-1", "h:²"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(CommandError, check=lambda error: error.exit_code == 2):
        parse_address(text)


def test_an_option_without_a_value_is_refused_without_being_shown() -> None:
    with pytest.raises(CommandError, match=r"-X sasl\.password has no value"):
        load(Connection(options=("sasl.password",)))
    with pytest.raises(CommandError, match="cannot be read"):
        load(Connection(command_config="/no/such/file"))


def test_the_protocol_is_plaintext_unless_it_is_set() -> None:
    assert load(Connection()).protocol == "PLAINTEXT"
    assert load(Connection(options=("security.protocol=sasl_ssl",))).protocol == "SASL_SSL"
    assert load(Connection("a:1,b")).addresses == [("a", 1), ("b", 9092)]
