"""`make ranges` does not pass for a Python that it has not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.packaging import pythons, ranges


def test_a_python_that_is_missing_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pythons, "find", lambda version: None)
    monkeypatch.setattr(ranges, "PLACE", tmp_path / "ranges")
    assert ranges.main(["3.14"]) == 1
    assert "3.14: not here" in capsys.readouterr().out


def test_the_list_has_what_the_classifiers_claim() -> None:
    text = (pythons.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert [version for version in pythons.VERSIONS if f"Python :: {version}" not in text] == []
    assert text.count('"Programming Language :: Python :: 3.') == len(pythons.VERSIONS)
