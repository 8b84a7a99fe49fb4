"""Names of metadata versions."""

from __future__ import annotations

import pytest

from kpybroker.config.metadata_versions import VERSIONS, at_least, metadata_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("3.9-IV0", "3.9-IV0"),
        ("3.9", "3.9-IV0"),
        ("3.9.1", "3.9-IV0"),
        ("3.3", "3.3-IV3"),
        ("0.10.2.1", "0.10.2-IV0"),
        ("0.8.2", "0.8.2"),
        ("5.0", None),
        ("", None),
        ("x", None),
    ],
)
def test_a_release_means_its_newest_version(text: str, version: str | None) -> None:
    assert metadata_version(text) == version


def test_versions_are_ordered() -> None:
    assert at_least("3.0-IV1", "2.8")
    assert not at_least("2.8", "3.0-IV1")
    assert len(set(VERSIONS)) == len(VERSIONS)
