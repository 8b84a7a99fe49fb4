"""The values of the tree: paths as ZooKeeper's PathUtils has them, and a failed multi that says which part."""

from __future__ import annotations

import pytest

from kpybroker.core import tree as t


@pytest.mark.parametrize("path", ["/", "/a", "/a/b-0000000001", "/<default>", "/...", "/é名"])
def test_good_paths(path: str) -> None:
    t.check_path(path)


@pytest.mark.parametrize(
    "path", ["", "a", "a/b", "/a/", "//", "/a//b", "/.", "/a/..", "/\0", "/\x7f", "/\ud800", "/\uffff", "/\U0001f600"]
)
def test_bad_paths(path: str) -> None:
    with pytest.raises(t.BadArguments):
        t.check_path(path)


def test_parents() -> None:
    assert [t.parent_path(path) for path in ("/a", "/a/b", "/a/b/c")] == ["/", "/a", "/a/b"]


def test_a_failed_multi_names_the_part_that_was_refused() -> None:
    error = t.MultiFailed((t.RolledBack("/a"), t.BadVersion("/b"), t.RuntimeInconsistency("/c")))
    assert error.index == 1
    assert isinstance(error.error, t.BadVersion)
    assert str(error) == "part 1 of a multi failed with BadVersion: /b"


def test_every_error_says_what_and_where() -> None:
    assert str(t.NoNode("/a")) == "/a"
    assert repr(t.NoNode("/a")) == "NoNode('/a')"
    assert str(t.SystemFailure("/a", "disk")) == "disk: /a"
    assert str(t.TreeClosed()) == "TreeClosed"
