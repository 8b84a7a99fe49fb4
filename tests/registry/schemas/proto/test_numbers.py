"""Numbers with `normalize=true`."""

from __future__ import annotations

import pytest

from kpybroker.registry.schemas.proto.numbers import short


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.50", "1.5"),
        ("1e-5", "0"),
        ("1.5e10", "15000000000"),
        ("0x1F", "31"),
        ("-0x5", "-5"),
        ("017", "15"),
        ("-0", "0"),
        ("100.", "100"),
        ("2.0005", "2"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1f", "1"),
        (".5", "0.5"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("abc", "abc"),
        ("1e9999", "1e9999"),
        ("9" * 1000, "9" * 1000),
    ],
)
def test_numbers_are_decimal_with_three_digits(text: str, expected: str) -> None:
    assert short(text) == expected
