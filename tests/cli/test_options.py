"""What the commands make of their options."""

from __future__ import annotations

import pytest

from kpybroker.cli.options import listener, parse_overrides, python_level


def test_overrides_are_keys_and_values() -> None:
    assert parse_overrides(["a=1", " b = x=y ", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}


@pytest.mark.parametrize("override", ["a", "=1", ""])
def test_anything_else_is_refused_in_two_lines(override: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, check=lambda error: error.code == 2):
        parse_overrides([override])
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_kafkas_name_of_a_warning() -> None:
    assert python_level("WARN") == "WARNING"
    assert python_level("INFO") == "INFO"


def test_the_host_is_bracketed_where_it_has_to_be() -> None:
    assert listener("127.0.0.1", 9092) == "PLAINTEXT://127.0.0.1:9092"
    assert listener("::1", 0) == "PLAINTEXT://[::1]:0"
