"""Findings that are known, until they are fixed."""

from __future__ import annotations

from pathlib import Path

from tests.house.until_fixed import remaining


def test_what_is_known_is_left_out_until_it_is_fixed(tmp_path: Path) -> None:
    found = [f"{tmp_path}/a.py:7: f: more than 60 lines", f"{tmp_path}/b.py: more than 500 lines"]
    assert remaining(found, tmp_path, ["a.py: f: more than 60 lines"]) == found[1:]
    assert remaining(found, tmp_path, ["a.py: f: more than 60 lines", "b.py: more than 500 lines"]) == []
    (left,) = remaining([], tmp_path, ["a.py: f: more than 60 lines"])
    assert left.startswith("a.py: f: more than 60 lines: is fixed")
