"""Files that would take long are read or refused at once."""

from __future__ import annotations

import pytest

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import protobuf

SYNTAX = 'syntax = "proto3"; '


@pytest.mark.parametrize(
    "text",
    [
        f"package {'a.' * 30_000}a; message M {{ M m = 1; }}",
        f"message M {{ {'map<string, ' * 50_000}M{'>' * 50_000} m = 1; }}",
        f"option (a){'.b' * 50_000} = 1;",
        "message M {" * 50_000,
        "option a = " + "{b:" * 50_000,
    ],
    ids=lambda text: text[:20],
)
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(RegistryError) as caught:
        protobuf.parse(SYNTAX + text, {}, is_new=True)
    assert "200" in caught.value.message


def test_many_parts_of_one_option_are_put_together_in_one_step() -> None:
    extend = "extend google.protobuf.MessageOptions { M o = 1; } "
    parts = "".join(f"option (o) = {{a: {number}}}; " for number in range(20_000))
    parsed = protobuf.parse(f"{SYNTAX}{extend}message M {{ {parts} }}", {}, is_new=True)
    assert parsed.normalized.count("option (o)") == 1
    assert "19999" in parsed.normalized
