"""Pages that are followed from their first command to their last, and why the others are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat_tests.docs.followed import NOT_FOLLOWED, OF_BUILDERS, PAGES, REASONS
from compat_tests.docs.in_order import DOCS, SERVES, Page, Reader, at_free_ports, steps
from compat_tests.packaging.pythons import ROOT

BY_NAME = re.compile(r"is followed by (\S+)::(\w+)")


def left_out() -> list[tuple[str, str, str]]:
    """(page, step, reason) of each step that is not followed."""
    found = [(page.name, step, reason) for page in PAGES for step, reason in page.without.items()]
    names = sorted(str(file.relative_to(DOCS).with_suffix("")) for file in DOCS.rglob("*.md"))
    for name in names:
        if beginnings := [one for one in NOT_FOLLOWED if name.startswith(one)]:
            found += [(name, step, NOT_FOLLOWED[max(beginnings, key=len)]) for step in steps(Page(name))]
    return found


def test_each_page_with_commands_is_followed_or_says_why_not() -> None:
    names = {str(file.relative_to(DOCS).with_suffix("")) for file in DOCS.rglob("*.md")}
    with_commands = {name for name in names if not name.startswith(OF_BUILDERS) and steps(Page(name))}
    followed = {page.name for page in PAGES}
    without_reason = [name for name in with_commands - followed if not name.startswith(tuple(NOT_FOLLOWED))]
    assert not without_reason
    unused = [one for one in NOT_FOLLOWED if not any(name.startswith(one) for name in with_commands - followed)]
    assert not unused


def test_what_another_test_follows_is_in_that_test() -> None:
    seen = 0
    for page, step, reason in left_out():
        if (found := BY_NAME.fullmatch(reason)) is None:
            assert reason in REASONS, f"{page}: {step}: {reason}"
            continue
        seen += 1
        text = (ROOT / found[1]).read_text(encoding="utf-8")
        assert f"def {found[2]}(" in text, reason
        if step.endswith((".sh", ".py")) and not step.startswith("examples/"):
            assert Path(step).name in text or Path(step).stem in text, f"{step} is not in {found[1]}"
    assert seen > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_left_out_of_a_page_is_on_it(page: Page) -> None:
    every = steps(page._replace(without={}))
    assert set(page.without) | set(page.given) | set(page.stopped) <= set(every)
    assert [step for step in every if step.startswith("pip install")], "the page says nowhere what to install"


@pytest.mark.parametrize(
    ("command", "here"),
    [
        ("kpybroker dev", "kpybroker dev --port 0"),
        ("kpybroker dev --console", "kpybroker dev --console 0 --port 0"),
        ("kpybroker dev --control 9099", "kpybroker dev --control 0 --port 0"),
        ("kpybroker server server.properties --processes 4", "kpybroker server server.properties --processes 4"),
    ],
)
def test_a_server_of_a_page_takes_free_ports(command: str, here: str) -> None:
    assert SERVES.match(command)
    assert at_free_ports(command) == here


@pytest.mark.wide
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_can_be_followed(page: Page, tmp_path: Path) -> None:
    printed = Reader(tmp_path).follow(page)
    assert len(printed) == len(steps(page)) >= 1
