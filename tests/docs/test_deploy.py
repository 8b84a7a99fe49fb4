"""The files of docs/deploy: sound for the linters of their formats, and with settings that the broker knows.

That they do what they say is shown with a root file system of their own, by `compat_tests/deploy`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpybroker.config.sources.environment import keys_from_environment
from kpybroker.config.sources.properties import load_properties
from tests.support.programs.samples import ROOT, environment, unknown_or_without_effect

DEPLOY = ROOT / "docs" / "deploy"
HADOLINT = Path(sys.executable).with_name("hadolint")
YAML_STYLE = (
    "{extends: default, rules: {document-start: disable, line-length: {max: 120}, truthy: {check-keys: false}}}"
)
EXPOSURE_MAX = 20
"""Of 100, where a unit without any restriction has 96."""


def lint(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def loaded(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def dockerfile_variables() -> dict[str, str]:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    (line,) = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in shlex.split(line))


@pytest.mark.parametrize("name", ["compose.yaml", "github-actions.yml", "prometheus-rules.yml"])
def test_yaml_is_tidy(name: str) -> None:
    lint(sys.executable, "-m", "yamllint", "--strict", "-d", YAML_STYLE, DEPLOY / name)


@pytest.mark.parametrize(
    ("schema", "name"), [("compose-spec", "compose.yaml"), ("github-workflows", "github-actions.yml")]
)
def test_yaml_has_the_schema_of_its_kind(schema: str, name: str) -> None:
    lint(sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", DEPLOY / name)


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint has no wheel for this machine")
def test_the_dockerfile_has_no_common_mistake() -> None:
    lint(HADOLINT, "--no-color", DEPLOY / "Dockerfile")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_the_unit_exposes_little() -> None:
    unit = DEPLOY / "kpybroker.service"
    lint("systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={EXPOSURE_MAX}", unit)


@pytest.mark.parametrize("source", ["Dockerfile", "compose.yaml", "server.properties"])
def test_every_setting_has_an_effect(source: str) -> None:
    if source == "server.properties":
        keys: Mapping[str, str] = load_properties(str(DEPLOY / source))
    else:
        variables = dockerfile_variables()
        if source == "compose.yaml":
            variables |= loaded(source)["services"]["kafka"]["environment"]
        keys, without_effect = keys_from_environment(variables)
        assert without_effect == []
    assert len(keys) >= 4
    assert unknown_or_without_effect(dict(keys)) == []


def test_the_image_starts_a_broker_from_its_variables(tmp_path: Path) -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (command,) = re.findall(r'^CMD \["(.*)"\]$', text, re.MULTILINE)
    variables = {name: value for name, value in dockerfile_variables().items() if name != "PATH"}
    changed = {"KPYBROKER_DEFAULT_LISTENERS": "PLAINTEXT://127.0.0.1:0", "KAFKA_LOG_DIRS": str(tmp_path / "data")}
    env = environment(tmp_path / "data", **variables | changed)
    with subprocess.Popen(command.split('", "'), env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(line.startswith("kpybroker ready at 127.0.0.1:") for line in process.stdout)
        process.terminate()
        assert process.wait(60) == 0


def test_the_files_agree_with_each_other() -> None:
    """Names that stand in several files: a change of one must be made in all."""
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    service = loaded("compose.yaml")["services"]["kafka"]
    assert service["build"] == {"context": "../..", "dockerfile": "docs/deploy/Dockerfile"}
    (volume,) = re.findall(r"^VOLUME (.*)$", dockerfile, re.MULTILINE)
    assert service["volumes"] == [f"data:{volume}"]
    assert dockerfile_variables()["KAFKA_LOG_DIRS"] == volume
    unit = (DEPLOY / "kpybroker.service").read_text(encoding="utf-8")
    install = (DEPLOY / "install.sh").read_text(encoding="utf-8")
    (program, _, file) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0].split()
    assert f"python3 -m venv {Path(program).parents[1]}\n" in install
    assert f"server.properties {file}\n" in install
    (state,) = re.findall(r"^StateDirectory=(.*)$", unit, re.MULTILINE)
    assert load_properties(str(DEPLOY / "server.properties"))["log.dirs"] == f"/var/lib/{state}"


def test_the_workflow_installs_and_runs_the_tests_on_each_python() -> None:
    job = loaded("github-actions.yml")["jobs"]["test"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [
        "pip install kpybroker confluent-kafka pytest",
        "python -m pytest",
    ]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    assert job["strategy"]["matrix"]["python-version"] == supported
