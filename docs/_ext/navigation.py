"""The tree of pages in the side bar, made once for each folder: to make it for each page is four tenths of a build.

Links of pages in one folder are the same. What differs is which entry is the page's own: Sphinx makes the tree of the
first page, furo adds its switches, and for each page the own entry and those above it are marked as they mark them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

BEFORE_FURO, AFTER_FURO = 400, 600
"""Priorities of listeners: furo's have 500."""
TREE = "furo_navigation_tree"
TAG = re.compile(r"<(?P<end>/?)(?P<name>ul|li|a|input)\b[^>]*>")

Toctree = Callable[..., str]
_plain: dict[tuple[str, tuple[tuple[str, Any], ...]], str] = {}
"""By folder and options the tree in which no entry is marked."""


def forget(app: Any) -> None:
    """For a build in the same process."""
    _plain.clear()


def share(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give furo the tree of the folder."""
    folder, _, name = page.rpartition("/")
    toctree: Toctree = context["toctree"]

    def of_folder(**options: Any) -> str:
        key = folder, tuple(sorted(options.items()))
        if key not in _plain:
            _plain[key] = unmarked(toctree(**options), f"{name}.html")
        return _plain[key]

    context["toctree"] = of_folder


def unmarked(tree: str, own: str) -> str:
    """The tree of a page whose own entry is as the others."""
    tree = re.sub(r' class="current"', "", tree)
    tree = re.sub(r'(class="[^"]*?)\bcurrent ', r"\1", tree)
    tree = re.sub(r'(class="[^"]*?) current(?=[ "])', r"\1", tree)
    return tree.replace('href="#"', f'href="{own}"')


def mark(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Mark the page's own entry."""
    if TREE in context:
        context[TREE] = marked(context[TREE], page.rpartition("/")[2] + ".html")


def marked(tree: str, own: str) -> str:
    """The tree with the entry that leads to `own`, and all above it, as those of the page."""
    above: list[re.Match[str]] = []
    switches: dict[int, re.Match[str]] = {}  # by how many elements are above it
    for tag in TAG.finditer(tree):
        if tag["name"] == "a" and f'href="{own}"' in tag[0]:
            break
        if tag["name"] == "input":
            switches[len(above)] = tag
        elif tag["name"] in ("ul", "li"):
            if not tag["end"]:
                above.append(tag)
                switches.pop(len(above), None)
            else:
                above.pop()
    else:
        return tree
    own_switch = TAG.match(tree, tree.index("</a>", tag.end()) + len("</a>"))
    edits = {one: _above(one[0], is_own=one is above[-1]) for one in above}
    edits[tag] = tag[0].replace('class="', 'class="current ').replace(f'href="{own}"', 'href="#"')
    found = [one for level, one in switches.items() if level < len(above)]
    if own_switch is not None and own_switch["name"] == "input":
        found.append(own_switch)
    edits |= {one: one[0].replace(" class=", ' checked="" class=') for one in found}
    parts, at = [], 0
    for one in sorted(edits, key=lambda one: one.start()):
        parts += [tree[at : one.start()], edits[one]]
        at = one.end()
    return "".join([*parts, tree[at:]])


def _above(tag: str, *, is_own: bool) -> str:
    if tag.startswith("<ul"):
        return tag.replace("<ul", '<ul class="current"')
    tag = re.sub(r'class="(toctree-l\d+)', r'class="\1 current', tag)
    return tag.replace('">', ' current-page">') if is_own else tag


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.connect("builder-inited", forget)
    app.connect("html-page-context", share, priority=BEFORE_FURO)
    app.connect("html-page-context", mark, priority=AFTER_FURO)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
