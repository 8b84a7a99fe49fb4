"""Names and paths in back-ticks that do not exist.

A name in single back-ticks is one of this repository. Checked are those that can be resolved:

- a path that begins with a folder of the repository, or names a Python file: it has to be there; after `::`, a test in
  it. Paths of Python files and pages are checked without back-ticks too, and those in the labels of drawings;
- a name with an underscore, or of two words with capitals: some code has to have it;
- a dotted name: code has to have it as it is, or its last part in a module or class of the name before. In pages one
  of three words or more, all in lower case, is a setting of anything, unless it begins with a package of ours.

A name of another project, such as a class of Kafka, is written in double back-ticks: nothing here can resolve it.
`docs/decisions` is not checked: a note keeps the names of its day.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tests.house.trees import blocks, walked

PATHS_FROM = ("kpybroker", "protocol_specs", "tests", "compat_tests", "docs")
BINARY = frozenset((".png", ".pyc", ".svg", ".jks", ".p12", ".gz", ".ico", ".woff2"))
_NOTHING = "nothing here has this name"
_QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FENCED = re.compile(r"^\s*(```|~~~).*?^\s*\1", re.DOTALL | re.MULTILINE)
_CHAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_LABEL = re.compile(r'label="(\w+(?:/\w+)+)(?:\\n([^"]*))?"')
_COMMENT = re.compile(r"(?:^|\s)# .*$", re.MULTILINE)
_BARE_PATH = re.compile(rf"(?<![\w/.`-])(?:{'|'.join(PATHS_FROM)})/[\w/.-]*\.(?:py|md)\b")
_PATH = re.compile(r"[\w.{},*?/-]+")
_PLAIN = re.compile(r"[a-z_][a-z0-9]*(?:_[a-z0-9]+)+(?:\(\))?|(?:[A-Z][a-z0-9]+){2,}(?:\(\))?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.(?:[A-Za-z_]\w*|\*))+(?:\(\))?")
_SETTING = re.compile(r"[a-z]+(?:\.[a-z][A-Za-z0-9]*){2,}")
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: what does not exist`, in docstrings of Python files and in pages; all paths are of one folder."""
    paths = list(paths)
    root = paths[0].parent
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    known = Known(root, [file for file in files if file.is_file() and "__pycache__" not in file.parts])
    for file, line, text in known.texts:
        for at, quoted in _names_in(text):
            if problem := known.problem(quoted, is_page=file.suffix == ".md"):
                yield f"{file}:{line + text.count(chr(10), 0, at)}: {problem}"


def _names_in(text: str) -> Iterator[tuple[int, str]]:
    """What is checked, and where it begins."""
    for fenced in _FENCED.finditer(text):
        for label in _LABEL.finditer(fenced.group()):
            yield fenced.start() + label.start(), f"kpybroker/{label.group(1)}"
            yield from ((fenced.start() + label.start(), word) for word in re.findall(r"\w+", label.group(2) or ""))
    prose = _FENCED.sub(lambda fenced: re.sub(r"[^\n]", " ", fenced.group()), text)
    yield from ((found.start(), found.group(1)) for found in _QUOTED.finditer(prose))
    yield from ((found.start(), found.group()) for found in _BARE_PATH.finditer(prose))


class Known:
    """What exists: files, names, dotted names as code has them, and what modules and classes hold."""

    def __init__(self, root: Path, files: Iterable[Path]) -> None:
        self.paths: set[str] = set()
        self.names: set[str] = set()
        self.chains: set[str] = set()
        self.members: dict[str, set[str]] = {}
        """Of each module and class, by each end of its dotted name."""
        self.bases: dict[str, set[str]] = {}
        self.texts: list[tuple[Path, int, str]] = []
        """The docstrings and pages to check: file, first line, text."""
        self._code: dict[str, str] = {}
        for file in files:
            path = file.relative_to(root)
            self.paths.update(map(str, (path, *path.parents)))
            self.names.update(path.with_suffix("").parts)
            self.chains.add(path.name)
            if file.suffix == ".py":
                self._read_code(file, path)
            elif file.suffix == ".md":
                self._read_page(file)
            elif file.suffix not in BINARY:
                self._add_text(file.read_text(encoding="utf-8", errors="replace"))

    def problem(self, quoted: str, *, is_page: bool) -> str | None:
        """What is wrong with what stands in back-ticks, if anything is."""
        path, _, test = quoted.partition("::")
        if _PATH.fullmatch(path) and (path.startswith(tuple(f"{one}/" for one in PATHS_FROM)) or path.endswith(".py")):
            return self._problem_of_path(path.rstrip("/"), test)
        name = quoted.removesuffix("()")
        if _PLAIN.fullmatch(quoted):
            return None if name in self.names else f"`{quoted}`: {_NOTHING}"
        if _DOTTED.fullmatch(quoted) and not (is_page and self._is_a_setting(quoted)):
            is_known = self._is_like_a_chain(name) if "*" in name else self._is_chain(name)
            return None if is_known else f"`{quoted}`: {_NOTHING}"
        return None

    def _problem_of_path(self, path: str, test: str) -> str | None:
        for one in _alternatives(path):
            found = [
                there
                for there in ((one,) if one in self.paths or f"{one}.py" in self.paths else self.paths)
                if there == one or f"/{there}".endswith(f"/{one}") or ("*" in one and fnmatchcase(there, one))
            ]
            if not found and f"{one}.py" not in self.paths:
                return f"`{path}`: no such file"
            function = test.partition("[")[0].rpartition("::")[2]
            if test and not any(re.search(rf"def {function}\b", self._code.get(there, "")) for there in found):
                return f"`{path}::{test}`: no such test"
        return None

    def _is_a_setting(self, quoted: str) -> bool:
        package = quoted.partition(".")[0]
        is_ours = package == "kpybroker" or f"kpybroker/{package}" in self.paths
        return not is_ours and _SETTING.fullmatch(quoted) is not None

    def _is_like_a_chain(self, pattern: str) -> bool:
        return any(fnmatchcase(chain, pattern) for chain in self.chains)

    def _is_chain(self, name: str) -> bool:
        if name in self.chains or name in self.members:
            return True
        *before, last = name.split(".")
        return any(last in self._members_of(".".join(before[begin:])) for begin in range(len(before)))

    def _members_of(self, name: str) -> set[str]:
        """Of a module, or a class with the classes that it extends."""
        bases = (self._members_of(base) for base in self.bases.get(name, ()) if base != name)
        return self.members.get(name, set()).union(*bases)

    def _read_page(self, file: Path) -> None:
        if "decisions" in file.parts:
            return
        self.texts.append((file, 1, file.read_text(encoding="utf-8")))

    def _read_code(self, file: Path, path: Path) -> None:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines = text.split("\n")
        for begin, end, docstring in _docstrings(tree):
            if "messages" not in path.parts:
                self.texts.append((file, begin, docstring))
            lines[begin - 1 : end] = [""] * (end - begin + 1)
        if "house" in path.parts:  # what checks names has wrong ones in its lists
            return
        self._code[str(path)] = code = _COMMENT.sub("", "\n".join(lines))
        self._add_text(code)
        module = path.with_suffix("").parts
        self._add_members(module[:-1] if module[-1] == "__init__" else module, tree)

    def _add_text(self, text: str) -> None:
        for chain in set(_CHAIN.findall(text)):
            if "." not in chain:
                self.names.add(chain)
                continue
            parts = chain.split(".")
            self.names.update(parts)
            for begin in range(len(parts)):
                self.chains.update(".".join(parts[begin:end]) for end in range(begin + 2, len(parts) + 1))

    def _add_members(self, module: tuple[str, ...], tree: ast.Module) -> None:
        for depth in range(1, len(module)):
            for begin in range(depth):
                self.members.setdefault(".".join(module[begin:depth]), set()).add(module[depth])
        held = set()
        for node in walked(tree):
            if isinstance(node, Definition):
                held.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                held.add(node.id)
            elif isinstance(node, ast.ImportFrom):
                held.update(alias.asname or alias.name for alias in node.names)
            if isinstance(node, ast.ClassDef):
                self.members.setdefault(node.name, set()).update(_members(node))
                bases = (base.attr if isinstance(base, ast.Attribute) else ast.unparse(base) for base in node.bases)
                self.bases.setdefault(node.name, set()).update(bases)
        for begin in range(len(module)):
            self.members.setdefault(".".join(module[begin:]), set()).update(held)


def _members(node: ast.ClassDef) -> Iterator[str]:
    for inner in walked(node):
        if isinstance(inner, Definition):
            yield inner.name
        elif isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """First line, last line and text of those of modules, classes and functions, and of strings below attributes."""
    for node in blocks(tree):
        for statement in node.body if isinstance(node, ast.Module | Definition) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text, end = statement.value.value, statement.value.end_lineno
                if isinstance(text, str) and end is not None:
                    yield statement.value.lineno, end, text


def _alternatives(path: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`."""
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    before, after = path[: found.start()], path[found.end() :]
    return [one for inner in found.group(1).split(",") for one in _alternatives(before + inner + after)]
