"""server.properties files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.config.sources.properties import UnreadableFile, load_properties


def test_javas_format_is_read(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# comment\n! too\na=1\nb : two words \nc = x\\\n  y\nd=\\u0041\na=2\nempty=\n", encoding="utf-8")
    assert load_properties(str(file)) == {"a": "2", "b": "two words", "c": "xy", "d": "A", "empty": ""}


@pytest.mark.parametrize(
    ("content", "reason"), [(b"a=\\u12", "Invalid"), (b"a=\xff\xfe", "it is not UTF-8 text (byte 2)")]
)
def test_a_file_in_another_format_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "bad.properties"
    file.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        load_properties(str(file))
    assert reason in caught.value.reason


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"none\.properties cannot be read: No such file"):
        load_properties(str(tmp_path / "none.properties"))
