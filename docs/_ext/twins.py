"""For programs that read the site: each page as Markdown, next to its HTML, and `llms.txt`, the list of them.

A twin is made of the finished HTML, so it has what the page takes from the code. See https://llmstxt.org for the form.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

SUMMARY = (
    "A Kafka broker in Python: for tests, development, and reading. It starts in a fraction of a second without a JVM; "
    "existing Kafka clients work with it."
)
LEFT_OUT = "a.headerlink, a.viewcode-link, svg, style, script, .graphviz, img[alt='']"
CODE = re.compile("<pre[ >].*?</pre>", re.DOTALL)
SPANS = re.compile("</?span[^>]*>")
SECTIONS = ("start", "guides", "concepts", "reference", "internals", "testing", "speed", "examples")


class Converter(MarkdownConverter):  # type: ignore[misc]
    """Signatures are headings of code, blocks of code keep their language, and links lead to the other twins."""

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A signature, or a term."""
        if "sig" not in (el.get("class") or []):
            return f"\n\n**{text.strip()}**\n"
        return f"\n\n#### `{' '.join(el.get_text().split())}`\n\n"

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """What it means."""
        return f"\n{text.strip()}\n"

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """A link; one to a page is to its twin."""
        href = str(el.get("href", ""))
        if not href.startswith(("http", "#")):
            el["href"] = re.sub(r"\.html(?=#|$)", ".html.md", href)
        made: str = super().convert_a(el, text, parent_tags)
        return made


def markdown(html: str) -> str:
    """The article of a page. The colours of its code are left out first: they are most of its elements."""
    begins = html.index('<article role="main"')
    text = html[begins : html.index("</article>", begins) + len("</article>")]
    plain = CODE.sub(lambda code: SPANS.sub("", code[0]), text)
    article = BeautifulSoup(plain, "html.parser").select_one("article[role=main]")
    assert article is not None
    for one in article.select(LEFT_OUT):
        one.decompose()
    converter = Converter(heading_style="ATX", bullets="-", code_language_callback=_language, escape_misc=False)
    return re.sub(r"\n{3,}", "\n\n", converter.convert_soup(article)).strip() + "\n"


def _language(pre: Tag) -> str:
    box = pre.find_parent(class_=re.compile("^highlight-"))
    classes = [] if box is None else box.get("class") or []
    found = next((str(name).removeprefix("highlight-") for name in classes if str(name).startswith("highlight-")), "")
    return "" if found in ("default", "none") else found


def write(app: Any, failure: Exception | None) -> None:
    """Write all twins, and `llms.txt` with a line for each, by the sections of the site."""
    if failure is not None or app.builder.name != "html":
        return
    lines = ["# kpybroker", "", f"> {SUMMARY}"]
    by_section: dict[str, list[str]] = {name: [] for name in SECTIONS}
    for name, title in sorted(app.env.titles.items()):
        page = Path(app.outdir, f"{name}.html")
        Path(f"{page}.md").write_text(markdown(page.read_text(encoding="utf-8")), encoding="utf-8")
        section = name.partition("/")[0]
        by_section.setdefault(section if "/" in name else "start", []).append(f"- [{title.astext()}]({name}.html.md)")
    for section, entries in by_section.items():
        lines += ["", f"## {section.capitalize()}", "", *entries]
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
