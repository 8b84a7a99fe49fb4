"""Twenty questions of a new user: each leads to its page in two clicks from the front page."""

from __future__ import annotations

import re

from tests.support.programs.samples import ROOT

LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
DOCS = ROOT / "docs"


def test_each_question_is_two_clicks_from_the_front_page() -> None:
    assert "start/questions.md" in LINK.findall((DOCS / "index.md").read_text())
    page = DOCS / "start" / "questions.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 20
    for row in rows:
        question, short, more = (cell.strip() for cell in row.strip("|").split(" | "))
        targets = [(page.parent / target).resolve() for target in LINK.findall(more)]
        assert question[-1] in "?."
        assert short
        assert targets, question
        assert [target for target in targets if not target.exists()] == [], question
