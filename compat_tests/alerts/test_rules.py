"""The rules as files: sound for promtool, with what an operator needs, each fired by a fault and by made-up values."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from compat_tests.alerts.expressions import metrics_of
from compat_tests.alerts.promtool import RULES, rules, run
from compat_tests.deps import ROOT
from kpybroker.metrics.spelling import Spelling, spell
from tests.metrics.families import FAMILIES

FOLDER = ROOT / "compat_tests" / "alerts"
GUIDE = ROOT / "docs" / "guides" / "alerts.md"
SAMPLE = ROOT / "docs" / "samples" / "metrics" / "prometheus-alerts.yml"
SEVERITIES = {"critical", "warning"}


def test_the_rules_are_sound() -> None:
    assert f"SUCCESS: {len(rules())} rules found" in run("check", "rules", RULES)


def test_rules_on_values_made_up() -> None:
    """Thresholds, what passes within the time that a rule waits, and the texts."""
    run("test", "rules", FOLDER / "rules_test.yml")


def test_a_configuration_loads_the_rules(tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "prometheus.yml")
    shutil.copy(RULES, tmp_path)
    assert f"SUCCESS: {len(rules())} rules found" in run("check", "config", tmp_path / "prometheus.yml")
    (job,) = yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))["scrape_configs"]
    assert f'up{{job="{job["job_name"]}"}}' in rules()["KafkaBrokerDown"]["expr"]


@pytest.mark.parametrize("name", rules())
def test_each_alert_has_what_an_operator_needs(name: str) -> None:
    rule = rules()[name]
    assert rule["labels"]["severity"] in SEVERITIES
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = f"{project['urls']['Documentation']}guides/alerts.html"
    assert rule["annotations"]["runbook_url"] == f"{page}#{name.lower()}"
    guide = GUIDE.read_text(encoding="utf-8")
    assert f"\n### {name}\n" in guide
    assert re.search(rf"^\| \[{name}\]\(#{name.lower()}\) \| {rule['labels']['severity']} \|", guide, re.MULTILINE)


@pytest.mark.parametrize("name", rules())
def test_each_alert_reads_metrics_of_ours(name: str) -> None:
    ours = {spell(family, Spelling.JMX_EXPORTER).name for family in FAMILIES}
    read = metrics_of(rules()[name]["expr"])
    assert read
    assert read - ours <= {"up"}


@pytest.mark.parametrize("name", rules())
def test_each_alert_is_fired_by_a_fault_and_by_values(name: str) -> None:
    faults = "".join((FOLDER / f"test_{kind}_faults.py").read_text(encoding="utf-8") for kind in ("cluster", "broker"))
    assert f'"{name}"' in faults
    tests = yaml.safe_load((FOLDER / "rules_test.yml").read_text(encoding="utf-8"))["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"] if case["alertname"] == name]
    assert {bool(case["exp_alerts"]) for case in cases} == {True, False}


def test_the_guide_has_no_alert_that_does_not_exist() -> None:
    assert set(re.findall(r"^### (Kafka\w+)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)) == set(rules())
