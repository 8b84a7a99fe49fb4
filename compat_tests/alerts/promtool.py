"""Prometheus' own judgement of rules and expressions, without a Prometheus: `promtool`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from compat_tests.alerts.scraped import STEP_S, Course
from compat_tests.deps import ROOT, promtool

DEPLOY = ROOT / "docs" / "deploy"
RULES = DEPLOY / "prometheus-rules.yml"
DEADLINE_S = 120.0
OF_THE_MACHINE = frozenset({"KafkaLoopBusy", "KafkaDiskNearlyFull"})
"""Alerts that may fire at any time where tests run: for another reason than that of the test."""


class Question(NamedTuple):
    """An expression, and what it gives `at_s` from the first sample: values by the labels."""

    at_s: int
    expression: str
    expected: Mapping[str, float]


def run(*arguments: str | Path) -> str:
    """The output of a command of promtool's that must succeed."""
    assert promtool().is_file(), "promtool is missing: make test-deps"
    command = [str(promtool()), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def rules() -> dict[str, dict[str, Any]]:
    """All alerts, by name."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found = [rule for group in groups for rule in group["rules"]]
    names = {rule["alert"]: rule for rule in found}
    assert len(names) == len(found), "two alerts have one name"
    return names


def ask(directory: Path, course: Course, metrics: Collection[str], questions: Sequence[Question]) -> None:
    """Load what was scraped of these metrics, run the rules over it, and ask. Raises AssertionError."""
    test = {
        "interval": f"{STEP_S}s",
        "input_series": course.input_series(metrics),
        "promql_expr_test": [
            {
                "expr": question.expression,
                "eval_time": f"{question.at_s}s",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in question.expected.items()],
            }
            for question in questions
        ],
    }
    file = directory / "scraped.json"
    content = {"rule_files": [str(RULES)], "evaluation_interval": f"{STEP_S}s", "tests": [test]}
    file.write_text(json.dumps(content), encoding="utf-8")
    run("test", "rules", file)


def firing(at_s: int, *alerts: str, leaving_out: Collection[str] = OF_THE_MACHINE) -> Question:
    """These alerts fire then and no others, but those left out."""
    others = "|".join(sorted(set(leaving_out) - set(alerts)))
    selector = f'ALERTS{{alertstate="firing",alertname!~"{others}"}}'
    return Question(at_s, f"group by (alertname) ({selector})", {f'{{alertname="{name}"}}': 1 for name in alerts})
