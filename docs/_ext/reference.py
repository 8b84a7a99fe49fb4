"""The reference of `kpybroker.testing`, written by Sphinx's autodoc from the code: what is public, and its examples.

`{fixtures}`             the fixtures of the pytest plugin, with their types and scopes
`{pytest-settings} KIND` its options, ini settings or marker
`{selection}`            the keyword arguments of faults of requests

A method is public if it checks its arguments (`@checked`); of values, each method is. Docstrings are Markdown: their
code becomes a link where it is a public name. So does code in guides. An example is a piece of a file of
docs/samples/testing/reference, from a comment with the name to the next comment or the end of the block.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from generated import Generated, cell

from kpybroker import testing
from kpybroker.testing import aio, faults, look
from kpybroker.testing.checking.calls import KINDS

MODULE = "kpybroker.testing"
SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "testing" / "reference"
MARK = re.compile(r"^ *# ((?:\w+\.)*\w+)$")
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINKED = ("guides/", "examples/", "start/", "reference/", "index")
"""Pages whose code is linked to the reference."""
NOT_MADE = ("Aio", "Brokers", "BrokerClock", "Fault", "Faults", "Node", "Snapshot")
"""Classes that a test does not construct, so that their arguments are no one's concern."""
ONLY_TYPES = (Any, testing.BrokerFactory, testing.Requests)
"""What is only there to annotate with, and has an entry on the page itself."""
NOT_PUBLIC = ("clear_others", "is_over", "seen", "started_s")
VALUES = ("find", "json", "value")
EVERYWHERE = ("config", "key", "log", "name", "port", "records", "reset", "topic", "value")
"""Names that mean other things, too."""


def classes() -> dict[str, type]:
    """The public classes by the name that the reference has for them."""
    found = {name: getattr(testing, name) for name in testing.__all__ if is_class(getattr(testing, name))}
    found = {name: cls for name, cls in found.items() if cls not in ONLY_TYPES}
    more = {"ClientMetric": look.ClientMetric, "ClientMetrics": look.ClientMetrics}
    return {**found, **{f"look.{name}": cls for name, cls in more.items()}, "aio.Aio": aio.Aio}


def is_class(value: Any) -> bool:
    """Whether it has methods to call: no type of another library, and none that only describes others."""
    return inspect.isclass(value) and value.__module__.startswith(MODULE) and not getattr(value, "_is_protocol", False)


def members(cls: type) -> Iterator[str]:
    """The public methods and properties of a class, with what it inherits; those of `Brokers` are not repeated."""
    above = set() if cls is testing.Brokers or not issubclass(cls, testing.Brokers) else set(members(testing.Brokers))
    for name, value in inspect.getmembers_static(cls):
        if name in above or name.startswith("_") or name in NOT_PUBLIC:
            continue
        if (
            (inspect.isfunction(value) and is_public(cls, value))
            or hasattr(value, "fget")
            or hasattr(value, "attrname")
        ):
            yield name


def is_public(cls: type | None, function: Any) -> bool:
    """Whether users call it: the kit checks their arguments."""
    return KINDS in vars(function) or function.__name__ in VALUES


@cache
def names() -> dict[str, str]:
    """What code may say -> the object of the reference: `assert_lag`, `Brokers.assert_lag`, `Broker`."""
    found: dict[str, str] = {}
    ambiguous: set[str] = set()
    for name, cls in classes().items():
        short = name.rpartition(".")[2]
        found[short] = f"{MODULE}.{name}"
        for member in () if issubclass(cls, BaseException) else members(cls):
            full = f"{MODULE}.{name}.{member}"
            found[f"{short}.{member}"] = full
            if member in found and found[member] != full:
                ambiguous.add(member)
            found.setdefault(member, full)
    found["wait_for"] = f"{MODULE}.wait_for"
    return {name: full for name, full in found.items() if name not in ambiguous or name == "wait_for"}


# --- autodoc


def skip_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what the kit calls itself."""
    if what != "class" or skip:
        return None
    if name in NOT_PUBLIC:
        return True
    if isinstance(value, types.FunctionType) and value.__module__.startswith(MODULE) and not name.startswith("__"):
        return not is_public(None, value)
    return None


def signature(app: Any, what: str, name: str, value: Any, options: Any, args: str | None, returns: str | None) -> Any:
    """None of what only the kit makes; types without the module that they are in."""
    if what == "class" and name.rpartition(".")[2] in NOT_MADE:
        return "", None
    return tuple(re.sub(r"\b(?:look|libraries|os)\.(?=[A-Z])", "", text) if text else text for text in (args, returns))


def docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Markdown as reStructuredText, and the example."""
    known, own = names(), _parameters(value)

    def written(match: re.Match[str]) -> str:
        full = None if match[1] in own else known.get(match[1].removesuffix("()"))
        return f":py:obj:`{match[1]} <{full}>`" if full and full != name else f"``{match[1]}``"

    if name == f"{MODULE}.Brokers":
        lines[0] = "What `Broker` and `Cluster` have in common."
    lines[:] = [CODE.sub(written, line) for line in lines]
    example = examples().get(re.sub(rf"^{MODULE}\.(?:aio\.|look\.)?", "", name))
    if example:
        lines += ["", ".. code-block:: python", "", *textwrap.indent(example, "   ").splitlines(), ""]


def _parameters(value: Any) -> frozenset[str]:
    """Of a function, or of a constructor: a docstring means them by their names."""
    try:
        return frozenset(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return frozenset()


def examples() -> dict[str, str]:
    """Name -> the lines that show it. One comment may follow another; then both names have the lines."""
    found: dict[str, str] = {}
    for file in sorted(SAMPLES.glob("*.py")):
        named: list[str] = []
        piece: list[str] = []
        for line in [*file.read_text(encoding="utf-8").splitlines(), ""]:
            mark = MARK.match(line)
            if piece and (mark or not line.strip()):
                found |= dict.fromkeys(named, textwrap.dedent("\n".join(piece)))
                named, piece = [], []
            if mark:
                named.append(mark[1])
            elif named:
                piece.append(line)
    return found


# --- pytest


class Fixtures(Generated):
    """Every fixture."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """An entry for each, with its example."""
        shown = examples()
        for node in fixtures():
            scope = (
                "of `kafka_broker_scope`, by default the run"
                if "broker_scope" in ast.unparse(node.decorator_list[0])
                else "the test"
            )
            yield from [f"````{{fixture}} {node.name}", f"Type: `{_given(node)}`. Lives as long as: {scope}.", ""]
            yield from [*(ast.get_docstring(node) or "").splitlines(), ""]
            yield from ["```python", *shown[node.name].splitlines(), "```", "````", ""]


def fixtures() -> list[ast.FunctionDef]:
    """The functions of all fixtures."""
    from kpybroker.pytest_plugin import fixtures, protocols

    trees = [ast.parse(Path(module.__file__).read_text(encoding="utf-8")) for module in (fixtures, protocols)]
    found = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [node for node in found if any("fixture" in ast.unparse(one) for one in node.decorator_list)]


def _given(node: ast.FunctionDef) -> str:
    """The type that a test gets."""
    text = ast.unparse(node.returns) if node.returns else "Any"
    return text.removeprefix("Iterator[").removesuffix("]") if text.startswith("Iterator[") else text


class PytestSettings(Generated):
    """Options, ini settings and the marker, as the plugin registers them."""

    def markdown(self) -> Iterator[str]:
        """An entry for each."""
        from kpybroker.pytest_plugin import marker, options

        if self.arguments[0] == "marker":
            call, _, text = marker.TEXT.partition(": ")
            yield from ["````{fixture} pytest.mark.kafka", f"`{call}`: {text}.", ""]
            yield from ["```python", *examples()["pytest.mark.kafka"].splitlines(), "```", "````"]
            return
        parser = _Parser()
        options.pytest_addoption(parser)  # type: ignore[arg-type]
        for name, value, text in getattr(parser, self.arguments[0]):
            yield from [f"````{{pytest-setting}} {name}", *([f"`{value}`", ""] if value else [])]
            yield from [f"{text[0].upper()}{text[1:]}.", "````", ""]


class _Parser:
    """Takes what a plugin registers with pytest: name, form of the value, help."""

    def __init__(self) -> None:
        self.options: list[tuple[str, str, str]] = []
        self.ini: list[tuple[str, str, str]] = []

    def getgroup(self, *names: str) -> _Parser:
        """Itself: there is one group."""
        return self

    def addoption(self, name: str, *, help: str, **rest: Any) -> None:
        """An option of the command line."""
        self.options.append((name, f"{name} {rest.get('metavar') or '|'.join(rest['choices'])}", help))

    def addini(self, name: str, help: str, kind: str = "string", default: Any = "") -> None:
        """A setting of a file."""
        form = f"{name} = true" if kind == "bool" else ""
        self.ini.append((name, form, help))


class SelectionTable(Generated):
    """The keyword arguments that select requests."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A table: argument, type, meaning."""
        from kpybroker.control.rules import fields

        docs = {**fields.MATCH, **fields.TRIGGER}
        own = {
            "when": "A predicate of the decoded request (its names are Kafka's, in snake_case), or paths and values.",
            "expect_unused": "It is no failure of the test if the fault never acts.",
        }
        yield "| argument | type | meaning |"
        yield "|---|---|---|"
        for name, kind in {**faults.Selection.__annotations__}.items():
            text = kind.__forward_arg__ if hasattr(kind, "__forward_arg__") else str(kind)
            yield f"| `{name}` | `{cell(text)}` | {own.get(name) or docs[name].doc} |"


# --- links from the guides


def link_code(app: Any, tree: nodes.document) -> None:
    """Code that names something of the reference leads there."""
    from sphinx import addnodes

    docname = app.env.docname
    if not docname.startswith(LINKED):
        return
    known, fixture_names = names(), {node.name for node in fixtures()}
    for literal in list(tree.findall(nodes.literal)):
        if isinstance(literal.parent, (nodes.reference, addnodes.pending_xref, nodes.title)):
            continue
        text = literal.astext()
        name = re.sub(r"\(.*\)$", "", text).removeprefix("@").removeprefix("broker.").lstrip(".")
        is_call = text.endswith(")") or text.startswith("broker.") or "_" in name or name[:1].isupper()
        if name in fixture_names:
            domain, kind, target = "std", "fixture", name
        elif is_call and name in known and (name not in EVERYWHERE or "broker." in text):
            domain, kind, target = "py", "obj", known[name]
        else:
            continue
        link = addnodes.pending_xref("", refdomain=domain, reftype=kind, reftarget=target, refdoc=docname)
        link["refexplicit"], link["refwarn"] = True, False
        literal.replace_self(link)
        link += literal


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.add_object_type("fixture", "fixture", objname="pytest", indextemplate="pair: %s; pytest")
    app.add_object_type("pytest-setting", "pytest-setting", objname="pytest", indextemplate="pair: %s; pytest")
    app.add_directive("fixtures", Fixtures)
    app.add_directive("selection", SelectionTable)
    app.add_directive("pytest-settings", PytestSettings)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", docstring)
    app.connect("doctree-read", link_code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
