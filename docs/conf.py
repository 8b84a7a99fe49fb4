"""How Sphinx builds this site: `make docs` writes it to build/docs, and it works without a network."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]

project = "kpybroker"
author = "the kpybroker authors"
copyright = "the kpybroker authors. Apache Kafka is a trademark of the Apache Software Foundation"
extensions = ["myst_parser", "sphinx.ext.autodoc", "diagrams", "generated"]
extensions += ["navigation", "reference", "openapi", "twins"]
exclude_patterns = ["_ext", "samples/**.md"]
source_suffix = {".md": "markdown"}

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "kpybroker"
html_static_path = ["_static"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_show_sourcelink = True
html_copy_source = True
html_sourcelink_suffix = ""
graphviz_output_format = "svg"
graphviz_dot_args = [
    "-Gbgcolor=transparent",
    "-Gpad=0.1",
    "-Gfontname=Helvetica",
    "-Nfontname=Helvetica",
    "-Efontname=Helvetica",
    "-Nfontsize=11",
    "-Efontsize=10",
    "-Nshape=box",
    "-Nstyle=rounded,filled",
]
