"""What holds for every page: samples are files that a test runs, and links lead somewhere."""

from __future__ import annotations

import re
import runpy
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.support.programs.samples import module_of

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "samples" not in page.parts)
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
TESTS = [
    ROOT / "tests" / "docs" / "test_samples.py",
    ROOT / "tests" / "docs" / "test_testing_samples.py",
    ROOT / "tests" / "docs" / "reference" / "test_reference_samples.py",
    ROOT / "tests" / "docs" / "reference" / "test_control_samples.py",
    ROOT / "compat_tests" / "docs" / "test_samples.py",
    ROOT / "compat_tests" / "security" / "test_rolling_change.py",
    ROOT / "tests" / "docs" / "test_deploy.py",
    ROOT / "compat_tests" / "clients" / "test_delivery.py",
    ROOT / "compat_tests" / "spark" / "pipelines" / "test_standalone.py",
    ROOT / "compat_tests" / "spark" / "pipelines" / "test_logs.py",
    ROOT / "tests" / "docs" / "test_security_samples.py",
    ROOT / "compat_tests" / "docs" / "test_security_samples.py",
    ROOT / "compat_tests" / "spark" / "test_sample.py",
    ROOT / "compat_tests" / "alerts" / "test_rules.py",
    ROOT / "compat_tests" / "alerts" / "test_dashboard.py",
    ROOT / "compat_tests" / "registry" / "test_samples.py",
    ROOT / "compat_tests" / "connect" / "test_samples.py",
    ROOT / "tests" / "docs" / "test_mirroring_samples.py",
    ROOT / "compat_tests" / "connect" / "mirror" / "test_mirror_samples.py",
]
INCLUDED = re.compile(r"^\s*```\{literalinclude\} (\S+)|\{download\}`[^`]*<(\S+)>`", re.MULTILINE)
COMMAND = re.compile(r"^\s*(make|python -m|python docs/|\.venv/bin/|kpybroker|\. \.venv|#|$)")


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_code_on_a_page_is_a_file_but_for_commands_of_this_project(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```(python|yaml|docker|properties|sh)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    for language, code in blocks:
        assert language == "sh", f"put the {language} into docs/samples and include it"
        assert all(COMMAND.match(line) for line in code.splitlines()), code


GENERATED = ("reference/compatibility.md", "reference/configuration.md")
DIAGRAM = r"^```\{graphviz\}\n---\nalt: >-\n(.*?)\n---\n(.*?)^```$"
CONTENT_WIDTH, FONT_PT_MIN = 736, 10
"""Of furo's column of text, in pixels; of the letters of a diagram at its own size."""
CELL_WORDS_MAX, PAGE_WORDS_MAX = 60, 2500
LOOKED_UP = ("reference/", "decisions/", "SECURITY.md")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_no_page_is_a_wall_of_text(page: Path) -> None:
    """Of a cell names of code do not count; of a page neither code nor tables do, and what is looked up may be long."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    name = page.relative_to(DOCS).as_posix()
    rows = [line for line in text.splitlines() if line.lstrip().startswith("|")]
    if name not in GENERATED and not name.startswith("decisions/"):
        for cell in re.split(r" \| ", re.sub(r"`+[^`]*`+|\]\([^)]*\)", "", " | ".join(rows))):
            assert len(cell.split()) <= CELL_WORDS_MAX, cell
    if not name.startswith(LOOKED_UP):
        assert len(text.split()) - len(" ".join(rows).split()) <= PAGE_WORDS_MAX


def test_every_sample_is_included_and_tested() -> None:
    included = {
        (page.parent / (shown or offered)).resolve()
        for page in PAGES
        for shown, offered in INCLUDED.findall(page.read_text(encoding="utf-8"))
    }
    tested = "".join(test.read_text(encoding="utf-8") for test in TESTS)
    files = [file for folder in ("samples", "deploy") for file in sorted((DOCS / folder).rglob("*"))]
    samples = [file for file in files if file.is_file() and file.suffix not in (".pyc", ".md")]
    assert len(samples) > 20
    for sample in samples:
        if sample.name == "crash.py":
            continue  # the harness of the delivery programs, a command of its own
        assert sample in included, f"{sample} is on no page"
        assert sample.name in tested or sample.stem in tested, f"{sample} is in no test"


@pytest.mark.parametrize("page", [*PAGES, *FRONT], ids=relative)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_paths_in_the_code_exist() -> None:
    for page in [*(page for page in PAGES if page.parent.name != "decisions"), ROOT / "CONTRIBUTING.md"]:
        for path in re.findall(r"`((?:kpybroker|tests|compat_tests)/[\w/.]+)`", page.read_text(encoding="utf-8")):
            assert (ROOT / path).exists() or (ROOT / f"{path}.py").exists(), f"{relative(page)}: {path}"


def test_each_of_the_twenty_questions_has_a_name_in_a_file() -> None:
    rows = re.findall(
        r"^\| .*\? \| `(\S+)` \| `(\w+)` \|$", (DOCS / "internals" / "twenty-questions.md").read_text(), re.MULTILINE
    )
    assert len(rows) >= 20
    for path, name in rows:
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8")), f"{path} has no {name}"


def test_every_package_is_on_a_page() -> None:
    rooms = "".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "internals" / "rooms").glob("*.md")))
    shown = set(re.findall(r"^```\{package\} (\S+)$", rooms, re.MULTILINE))
    packages = {
        ".".join(file.relative_to(ROOT).parts[:-1]) for file in sorted((ROOT / "kpybroker").rglob("__init__.py"))
    }
    assert packages - shown == {"kpybroker", "kpybroker.wire.messages"}


def test_the_map_names_the_packages_of_the_contracts() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = {one["containers"][0]: one["layers"] for one in contracts if one["type"] == "layers"}
    text = (DOCS / "internals" / "architecture.md").read_text(encoding="utf-8")
    for container in ("kpybroker", "kpybroker.broker"):
        for name in " : ".join(layers[container]).split(" : "):
            assert name == "__main__" or re.search(rf"^\| \[?`{name}(\.py)?`", text, re.MULTILINE), name


def test_each_diagram_has_a_text_and_is_legible_at_the_width_of_a_page() -> None:
    diagrams = module_of(DOCS / "_ext" / "diagrams.py")
    arguments = runpy.run_path(str(DOCS / "conf.py"))["graphviz_dot_args"]
    seen = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("```{graphviz}") == len(re.findall(DIAGRAM, text, re.MULTILINE | re.DOTALL)), page
        for head, code in re.findall(DIAGRAM, text, re.MULTILINE | re.DOTALL):
            seen += 1
            assert len(head.split()) > 10, f"{relative(page)}: {code.splitlines()[0]} has no alt"
            if dot := shutil.which("dot"):
                svg, width = diagrams.drawn(code, dot, arguments)
                assert width * diagrams.SCALE_MIN <= CONTENT_WIDTH, f"{relative(page)}: {code.splitlines()[0]}"
                assert min(map(float, re.findall(r'font-size="([\d.]+)', svg))) >= FONT_PT_MIN
    assert seen >= 20
