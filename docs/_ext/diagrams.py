"""Diagrams of graphviz as part of their page, so that they follow its colour scheme; and images keep their texts whole.

A diagram is drawn at its own size, made smaller down to `SCALE_MIN`, at which its letters are still 10 px, and scrolls
inside its frame where the window is narrower than that. Colours are those of `_static/diagrams.css`.
"""

from __future__ import annotations

import re
import subprocess
from html import escape
from typing import Any

from docutils import nodes
from sphinx.ext.graphviz import graphviz

PX_PER_PT = 4 / 3
SCALE_MIN = 0.75
BROKEN_ALT = re.compile(r"!\[([^\]`]*\n[^\]`]*)\]\(")


def drawn(code: str, dot: str, arguments: list[str]) -> tuple[str, int]:
    """The SVG of a diagram without what belongs to a file of its own, and its natural width in pixels."""
    done = subprocess.run([dot, *arguments, "-Tsvg"], input=code, capture_output=True, text=True, check=True)
    svg = done.stdout[done.stdout.index("<svg") :]
    width = round(float(re.findall(r'width="([\d.]+)pt"', svg)[0]) * PX_PER_PT)
    svg = re.sub(r"<!--.*?-->\s*|<title>.*?</title>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:id|font-family|xlink:title)="[^"]*"', "", svg)
    svg = re.sub(r'^<svg width="[^"]*" height="[^"]*"', "<svg", svg)
    return svg, width


def framed(svg: str, width: int, width_min: int, alt: str) -> str:
    """The SVG in a frame that scrolls where the window is narrower than `width_min`, with a text in its place."""
    role = "group" if "<a " in svg else "img"
    text = escape(" ".join(alt.split()), quote=True)
    style = f"width:100%;max-width:{width}px;min-width:{width_min}px"
    opened = svg.replace("<svg", f'<svg role="{role}" aria-label="{text}" style="{style}"', 1)
    return f'<div class="diagram" tabindex="0">{opened}</div>\n'


def visit(self: Any, node: graphviz) -> None:
    """Of the HTML builders."""
    config = self.builder.config
    svg, width = drawn(node["code"], config.graphviz_dot, config.graphviz_dot_args)
    self.body.append(framed(svg, width, round(width * SCALE_MIN), node.get("alt", "")))
    raise nodes.SkipNode


def whole_texts(app: Any, docname: str, source: list[str]) -> None:
    """Put the text of an image on one line: the parser would drop the blank where a line of it ends."""
    source[0] = BROKEN_ALT.sub(lambda found: f"![{' '.join(found[1].split())}](", source[0])


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.setup_extension("sphinx.ext.graphviz")
    app.add_node(graphviz, override=True, html=(visit, None))
    app.connect("source-read", whole_texts)
    app.add_css_file("diagrams.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
