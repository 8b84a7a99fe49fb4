"""The generated message classes are those of the specs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from protocol_specs import generate, names
from protocol_specs.notation import read_specs


def test_messages_are_not_stale() -> None:
    """When this fails: python -m protocol_specs.generate."""
    assert generate.main(["--check"]) == 0


def test_check_names_stale_missing_and_left_over_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "MESSAGES", tmp_path)
    monkeypatch.setattr(names, "NAMES", tmp_path / "types" / "names.py")
    assert generate.main([]) == 0
    (tmp_path / "types" / "names.py").write_text("edited", encoding="utf-8")
    (tmp_path / "produce.py").write_text("edited", encoding="utf-8")
    (tmp_path / "fetch.py").unlink()
    (tmp_path / "left_over.py").write_text("", encoding="utf-8")
    assert generate.main(["--check"]) == 1
    complaints = capsys.readouterr().err
    assert all(name in complaints for name in ("produce.py", "fetch.py", "left_over.py", "names.py"))
    assert "metadata.py" not in complaints
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    assert not (tmp_path / "left_over.py").exists()


def test_every_spec_opens_with_a_line_of_doc() -> None:
    assert all(spec.doc.endswith(".") for spec in read_specs(generate.SPECS))


def test_each_name_of_a_table_is_a_type_of_the_kit() -> None:
    from kpybroker.testing.typed import names as typed

    for alias in names.aliases():
        assert get_args(getattr(typed, alias.name)) == alias.words
        assert len(set(alias.words)) == len(alias.words)
