"""The site is built once: a warning or a broken link fails, and what pages take from the code is on them.

`make docs` builds it in the same way. Without graphviz it is built as text, which has no pictures.
"""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kpybroker import pytest_plugin, testing
from kpybroker.control.catalogue import GROUPS
from tests.support.programs.site import built_site, public, reference_of_testing

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("sphinx", reason="the docs extra is not installed")


@pytest.fixture(scope="module")
def site() -> Path:
    return built_site()


def words_of(site: Path, page: str) -> str:
    """What a reader of the page sees."""
    text = site / f"{page}.txt"
    if text.exists():
        return text.read_text(encoding="utf-8")
    main = (site / f"{page}.html").read_text(encoding="utf-8").partition('<article role="main"')[2]
    return unescape(re.sub(r"<[^>]*>", "", main.partition("</article>")[0]))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("reference/command-line", "A cluster of so many brokers"),
        ("reference/command-line", "kpybroker group seek copies --to-group readers"),
        ("guides/command-line", "orders.jsonl"),
        ("reference/exit-codes", "a log directory is locked by another broker"),
        ("reference/errors", "OFFSET_OUT_OF_RANGE"),
        (
            "reference/testing",
            "assert_lag( group: str, lag: int, topic: str | None = None, *, partition: int | None = None, ) → None",
        ),
        ("reference/testing", "start_timeout: float = 60.0"),
        ("reference/testing", "Raises StartError."),
        ("reference/testing", 'broker.assert_lag("billing", 2, "orders")'),
        ("reference/testing", "--kafka-bootstrap HOST:PORT"),
        ("reference/registry", "GET /subjects/{subject}/versions/{version}/referencedby"),
        ("reference/registry", "INCOMPATIBLE_SCHEMA"),
        ("reference/control", "curl -s 127.0.0.1:9099/v1/advance -d '{\"ms\": 90000000}'"),
        ("reference/python-api", "encode(message: Message, version: int)"),
        ("reference/configuration", "log.retention.hours"),
        ("internals/rooms/handlers", "join_group"),
        ("speed/index", "from start to the first"),
        ("guides/ci", "def test_an_order_arrives"),
    ],
)
def test_a_page_has_what_is_taken_from_elsewhere(site: Path, page: str, text: str) -> None:
    assert " ".join(text.split()) in " ".join(words_of(site, page).split())


@pytest.fixture(scope="module")
def html(site: Path) -> Path:
    if not (site / "index.html").exists():
        pytest.skip("without graphviz the site is built as text")
    return site


def objects(html: Path) -> set[str]:
    """The names that the search of the site finds as objects of the reference."""
    text = (html / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return {f"{prefix}.{entry[4]}".lstrip(".") for prefix, found in index["objects"].items() for entry in found}


def public_names(cls: type) -> set[str]:
    """Methods and properties that users call: their arguments are checked, or they are properties or of a value."""
    from kpybroker.testing.checking.calls import KINDS

    found = set()
    for name in dir(cls):
        value: Any = getattr(cls, name)
        if not name.startswith("_") and (isinstance(value, property) or KINDS in getattr(value, "__dict__", {})):
            found.add(name)
    return found - {"is_over", "clear_others"}


def test_the_search_finds_each_public_name(html: Path) -> None:
    found = objects(html)
    assert {f"kpybroker.testing.{name}" for name in testing.__all__} <= found
    for name in testing.__all__:
        cls = getattr(testing, name)
        if isinstance(cls, type):
            at = "Brokers" if issubclass(cls, testing.Brokers) else name
            of_all = public_names(testing.Brokers) if at == "Brokers" else set()
            names = {f"kpybroker.testing.{at}.{one}" for one in of_all}
            names |= {f"kpybroker.testing.{name}.{one}" for one in public_names(cls) - of_all}
            names |= {f"kpybroker.testing.{name}.{one}" for one in getattr(cls, "__dataclass_fields__", ())}
            assert names <= found, names - found
    fixtures = {name for name in pytest_plugin.__all__ if not name.startswith("pytest_")}
    assert fixtures | {method for group in GROUPS for method in group.names} <= found


def test_the_search_finds_each_entry_of_the_reference(html: Path) -> None:
    """The awaitable twins, values and errors too."""
    reference = reference_of_testing()
    found = objects(html)
    entries = public(reference) - {"pytest.mark.kafka"} - {node.name for node in reference.fixtures()}
    assert len(entries) > 150
    assert {name for name in entries if f"kpybroker.testing.{name}" not in found} == set()


def test_what_the_kit_calls_itself_is_not_in_the_search(html: Path) -> None:
    last = {name.rpartition(".")[2] for name in objects(html)}
    assert last.isdisjoint({"problem", "ended", "failed", "in_thread", "clear_others", "to_bytes", "topic_of"})


def test_code_of_the_guides_leads_to_the_reference(html: Path) -> None:
    page = (html / "guides" / "testing.html").read_text(encoding="utf-8")
    for name in ("kpybroker.testing.Brokers.assert_records", "kafka_faults", "kpybroker.testing.Brokers.cap_versions"):
        assert re.search(rf'href="\.\./reference/testing\.html#[\w-]*{name.replace("_", "[_-]")}"', page), name


def test_each_page_has_a_twin_in_markdown_and_a_line_in_llms_txt(html: Path) -> None:
    listed = (html / "llms.txt").read_text(encoding="utf-8")
    pages = [page for page in html.rglob("*.html") if page.stem not in ("genindex", "search", "py-modindex")]
    pages = [page for page in pages if "_static" not in page.parts]
    assert len(pages) > 80
    for page in pages:
        twin = page.with_name(f"{page.name}.md")
        assert twin.read_text(encoding="utf-8").startswith("# "), twin
        assert f"]({twin.relative_to(html).as_posix()})" in listed
    reference = (html / "reference" / "testing.html.md").read_text(encoding="utf-8")
    assert "#### `assert_lag(" in reference
    assert "```python\nbroker.assert_lag(" in reference
    assert "](../guides/testing.html.md)" in reference


def test_the_openapi_document_is_next_to_its_page(html: Path) -> None:
    document = json.loads((html / "reference" / "registry-openapi.json").read_text(encoding="utf-8"))
    assert "/subjects/{subject}/versions" in document["paths"]


def test_the_search_puts_the_reference_and_guides_above_decisions(html: Path) -> None:
    search = (html / "search.html").read_text(encoding="utf-8")
    script = (html / "_static" / "language_data.js").read_text(encoding="utf-8")
    assert "var Scorer = {" in script
    assert '"decisions/": -20' in script
    assert search.index("searchtools.js") < search.index("language_data.js")  # both before the first query


def test_the_text_of_an_image_keeps_its_blanks(html: Path) -> None:
    """Where a line of the page ends inside of it."""
    page = (html / "guides" / "pipelines" / "activity.html").read_text(encoding="utf-8")
    assert "with its length and its number of events" in page
    assert [page for page in html.rglob("*.html") if '<img alt=""' in page.read_text(encoding="utf-8")] == []
