"""The certificates of brokers for development."""

from __future__ import annotations

from pathlib import Path

from kpybroker.control.development.certificates import certificates, files_in


def test_they_stay_the_same_until_they_do_not_fit(tmp_path: Path) -> None:
    first = certificates(tmp_path / "tls", "localhost")
    assert first == files_in(tmp_path / "tls")
    before = [Path(file).read_bytes() for file in first]
    assert [Path(file).read_bytes() for file in certificates(tmp_path / "tls", "0.0.0.0")] == before
    assert [Path(file).read_bytes() for file in certificates(tmp_path / "tls", "other.example")] != before
    assert Path(first.broker).stat().st_mode & 0o77 == 0
