"""How findings are printed and counted."""

from __future__ import annotations

import json

import pytest

from kpybroker.client.doctor.findings import Findings, counted


def test_people_see_each_finding_with_its_fix_and_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings("table")
    findings.ok("name", "h is 127.0.0.1")
    findings.failed("connection", "refused", "start it")
    findings.warning("clock", "late", "set it")
    assert findings.finish() == 1
    assert capsys.readouterr().out.splitlines() == [
        "ok       name        h is 127.0.0.1",
        "failed   connection  refused",
        "                     fix: start it",
        "warning  clock       late",
        "                     fix: set it",
        "",
        "1 failure, 1 warning",
    ]


def test_warnings_alone_are_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings("table")
    findings.warning("clock", "late", "set it")
    assert findings.finish() == 0
    assert Findings("table").finish() == 0
    assert "nothing is wrong" in capsys.readouterr().out


def test_programs_get_a_list_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings("json")
    findings.failed("a", "b", "c")
    assert capsys.readouterr().out == ""
    assert findings.finish() == 1
    assert json.loads(capsys.readouterr().out) == [{"check": "a", "status": "failed", "text": "b", "fix": "c"}]


def test_counts_are_english() -> None:
    assert [counted(n, "broker") for n in (0, 1, 2)] == ["0 brokers", "1 broker", "2 brokers"]
