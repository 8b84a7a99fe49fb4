"""Errors of options name what is accepted."""

from __future__ import annotations

import click
import pytest

from kpybroker.cli.param_types import Number


@pytest.mark.parametrize("text", ["abc", "", "-1", "65536", "1.5"])
def test_the_error_names_the_range(text: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        Number(0, 65535).convert(text, None, None)
    assert caught.value.message == f"{text!r} is not a whole number from 0 to 65535."


def test_a_range_without_an_end() -> None:
    with pytest.raises(click.BadParameter, match="'0' is not a whole number of at least 1"):
        Number(1).convert("0", None, None)
    assert Number(1).convert("70000", None, None) == 70000
