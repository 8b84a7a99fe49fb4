"""Directives whose content is taken from the code and the benchmarks' data, so that pages cannot go stale.

`{bench-chart} COMMAND`   a chart of one column of ratios     options: title, table, column, most, less-is-better
`{growth-chart} COMMAND`  figures over a size, as lines      content: a table's number and its row, a line each
`{bench-table} COMMAND`   the table itself                    options: table, columns
`{bench-conditions} COMMAND`
`{package} NAME`          a package's docstring, and one line for each of its modules
`{api-table} NAME`         the public names of a module, with the first paragraph of each docstring
`{command-help} WORDS`    what `kpybroker WORDS --help` prints
`{client-commands}`       the help of every command that talks to a cluster
`{error-codes}`           Kafka's error codes with the broker's texts
`{exit-codes}`            the table of exit codes
`{releases-compared}`     versions of APIs in Kafka 3.9, Kafka 4.3 and here, where they differ
`{apis-not-served}`       those of Kafka 4.3 that are not here
`{control-methods}`       every method of the control channel, with the examples of docs/samples/testing
`{fault-fields} PART`      the fields of a fault rule: match, act, options or trigger
`{metric-tables}`         every metric, by area
`{metrics-absent} NAMES`  what Kafka or a dashboard has and the broker has not: NAMES or MBEANS
`{fault-names}`           what a rule can name about the requests of each API
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import charts  # noqa: E402
import growth  # noqa: E402
from diagrams import framed  # noqa: E402


class Generated(Directive):
    """A directive that writes Markdown, which is then read like the page around it."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {
        "title": directives.unchanged_required,
        "table": directives.nonnegative_int,
        "column": directives.nonnegative_int,
        "columns": directives.unchanged,
        "most": float,
        "less-is-better": directives.flag,
    }

    def markdown(self) -> Iterator[str]:
        """The lines of Markdown that stand in the directive's place."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The nodes of `markdown()`."""
        box = nodes.container()
        self.state.nested_parse(StringList(list(self.markdown()), "generated"), self.content_offset, box)
        return box.children


class BenchChart(Generated):
    """Ratios to Kafka as bars."""

    def run(self) -> list[nodes.Node]:
        """One raw SVG node."""
        table = charts.load(self.arguments[0], self.options.get("table", 0))
        column = self.options.get("column", table.head.index("ratio") if "ratio" in table.head else 0)
        rows = [(row[0], charts.figure(row[column])) for row in table.rows if row[column]]
        less, title = "less-is-better" in self.options, self.options["title"]
        svg, text = charts.ratio_chart(rows, title=title, most=self.options.get("most", 4.0), less_is_better=less)
        return [nodes.raw("", framed(svg, charts.WIDTH, charts.WIDTH_MIN, text), format="html")]


class GrowthChart(Generated):
    """Figures over a size, a small chart for each line of the content: a table's number, then its row."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """One raw SVG node."""
        wanted = (line.split(maxsplit=1) for line in self.content)
        panels = [growth.panel(charts.load(self.arguments[0], int(table)), row) for table, row in wanted]
        svg, text = growth.growth_chart(panels)
        return [nodes.raw("", framed(svg, growth.WIDTH, charts.WIDTH_MIN, text), format="html")]


class BenchTable(Generated):
    """The table that a chart is drawn from."""

    def markdown(self) -> Iterator[str]:
        """A Markdown table of the columns asked for, or all."""
        table = charts.load(self.arguments[0], self.options.get("table", 0))
        columns = [int(c) for c in self.options.get("columns", "").split()] or list(range(len(table.head)))
        for row in (table.head, ["---"] * len(table.head), *table.rows):
            yield "| " + " | ".join(row[column] for column in columns) + " |"


class BenchConditions(Generated):
    """When and how a benchmark was measured."""

    def markdown(self) -> Iterator[str]:
        """One paragraph."""
        yield charts.conditions(self.arguments[0])


class Package(Generated):
    """A package as its docstrings describe it."""

    def markdown(self) -> Iterator[str]:
        """The package's docstring, then a table of its modules."""
        folder = ROOT.joinpath(*self.arguments[0].split("."))
        if text := docstring(folder / "__init__.py"):
            yield from text.splitlines()
            yield ""
        yield "| module | what it is |"
        yield "|---|---|"
        for file in sorted(folder.iterdir()):
            target = file / "__init__.py" if file.is_dir() else file
            if (target.name.startswith("__") and target == file) or not target.is_file() or target.suffix != ".py":
                continue
            name = file.name if file.is_dir() else file.stem
            yield f"| `{name}{'/' if file.is_dir() else ''}` | {cell(docstring(target))} |"


class Module(Generated):
    """The public names of a module."""

    def markdown(self) -> Iterator[str]:
        """A table: name or signature, first paragraph of the docstring."""
        tree = ast.parse(ROOT.joinpath(*self.arguments[0].split(".")).with_suffix(".py").read_text(encoding="utf-8"))
        yield f"| `{self.arguments[0]}` | |"
        yield "|---|---|"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                signature = ast.unparse(node.args).replace("|", "\\|")
                yield f"| `{node.name}({signature})` | {cell(ast.get_docstring(node))} |"
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield f"| `{node.name}` | {cell(ast.get_docstring(node))} |"


class CommandHelp(Generated):
    """The help of a command, as it is printed."""

    def markdown(self) -> Iterator[str]:
        """One block of text."""
        from click.testing import CliRunner

        from kpybroker.cli.main import cli

        words = self.arguments[0].split()[1:]
        result = CliRunner().invoke(cli, [*words, "--help"], prog_name="kpybroker", terminal_width=90)
        if result.exit_code:
            raise self.error(f"{self.arguments[0]} --help ends with exit code {result.exit_code}")
        yield from ["```text", f"$ {' '.join(self.arguments[0].split())} --help", *result.output.splitlines(), "```"]


class ClientCommands(Generated):
    """Each command for a cluster, with its help."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A heading and a block for each noun and verb."""
        import click

        from kpybroker.cli.lazy import CLIENT_COMMANDS
        from kpybroker.cli.main import cli

        context = click.Context(cli)
        for name in CLIENT_COMMANDS:
            command = cli.get_command(context, name)
            verbs = sorted(command.commands) if isinstance(command, click.Group) else []
            for words in (name, *(f"{name} {verb}" for verb in verbs)):
                level = "####" if " " in words else "###"
                yield from [f"{level} kpybroker {words}", "", "```text", *self._help(words), "```", ""]

    def _help(self, words: str) -> list[str]:
        """What the command prints, without what is the same for all."""
        from click.testing import CliRunner

        from kpybroker.cli.main import cli

        result = CliRunner().invoke(cli, [*words.split(), "--help"], prog_name="kpybroker", terminal_width=90)
        if result.exit_code:
            raise self.error(f"kpybroker {words} --help ends with exit code {result.exit_code}")
        text = re.sub(SHARED_OPTIONS, "", result.output, flags=re.DOTALL)
        return text.partition("  Exit codes:")[0].rstrip().splitlines()


SHARED_OPTIONS = r"  -b, --bootstrap-server.*?(?=  -h, --help)"
"""From the first to the last option that every command for a cluster has."""


class ErrorCodes(Generated):
    """Every error code that has a name."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A table by code."""
        from kpybroker.wire.errors import MESSAGES, ErrorCode

        yield "| code | name | what it means |"
        yield "|---|---|---|"
        for code in ErrorCode:
            yield f"| {int(code)} | `{code.name}` | {MESSAGES.get(code, '')} |"


class FaultFields(Generated):
    """The fields of one part of a fault rule."""

    def markdown(self) -> Iterator[str]:
        """A table by field; of acts, also what a client sees."""
        from kpybroker.control.rules import fields

        if self.arguments[0] == "act":
            yield "| act | value | what it does | options | what a client sees |"
            yield "|---|---|---|---|---|"
            for name, act in fields.ACTS.items():
                options = ", ".join(f"`{option}`" for option in act.options)
                yield f"| `{name}` | {act.shape} | {act.doc} | {options} | {act.sees} |"
            return
        table = {"match": fields.MATCH, "options": fields.OPTIONS, "trigger": fields.TRIGGER}[self.arguments[0]]
        yield "| field | value | meaning |"
        yield "|---|---|---|"
        for name, field in table.items():
            yield f"| `{name}` | {field.shape} | {field.doc} |"


class MetricTables(Generated):
    """Every family of metrics."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A heading and a table for each area."""
        from kpybroker.metrics.spelling import Spelling, spell
        from tests.metrics.families import AREAS

        for area, families in AREAS.items():
            yield from ["", f"### {area}", "", "| metric | unit | meaning | worry when |", "|---|---|---|---|"]
            for family in families:
                spellings = dict.fromkeys(spell(family, spelling).name for spelling in Spelling)
                names = "<br>".join(f"`{name}`" for name in spellings)
                attribute = f", attribute `{family.attribute}`" if family.attribute else ""
                mbean = "" if family.fixed else f"<br>of `{family.object_name()}`{attribute}"
                labels = "" if not family.fixed or not family.tags else f"<br>labels {', '.join(family.tags)}"
                yield f"| {names}{mbean}{labels} | {family.unit} | {family.meaning} | {family.worry} |"


class MetricsAbsent(Generated):
    """What is left out, with its reason."""

    def markdown(self) -> Iterator[str]:
        """A table by name."""
        from tests.metrics import absent

        yield "| name | why it is not here |"
        yield "|---|---|"
        for name, reason in getattr(absent, self.arguments[0]).items():
            yield f"| `{cell(name)}` | {reason} |"


class FaultNames(Generated):
    """What a fault rule can name, by API."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A table by API, with a column for each kind of name."""
        from kpybroker.broker.requests.served.apis import SERVED
        from kpybroker.control.rules.entities import NAMED
        from kpybroker.control.rules.entity_table import kinds_of
        from kpybroker.wire.api import API_INFO

        yield "| API | " + " | ".join(f"`{kind}`" for kind in NAMED) + " |"
        yield "|---|" + "---|" * len(NAMED)
        for key in SERVED:
            kinds = kinds_of(key)
            yield f"| {API_INFO[key].name} | " + " | ".join("yes" if kind in kinds else "" for kind in NAMED) + " |"


class ReleasesCompared(Generated):
    """The APIs whose versions are not the same in Kafka 3.9, Kafka 4.3 and here."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A table by API."""
        from kpybroker.broker.requests.served.apis import SERVED
        from kpybroker.broker.requests.served.kafka_releases import versions_of
        from kpybroker.wire.api import API_INFO

        columns = [versions_of("3.9"), versions_of("4.3"), SERVED]
        yield "| API | Kafka 3.9 | Kafka 4.3 | kpybroker |"
        yield "|---|---|---|---|"
        for key in sorted({key for one in columns for key in one}):
            ranges = [one.get(key) for one in columns]
            if len(set(ranges)) > 1:
                cells = ["no" if one is None else f"{one[0]}-{one[1]}" for one in ranges]
                yield f"| {API_INFO[key].name} | {' | '.join(cells)} |"


class ApisNotServed(Generated):
    """The APIs of Kafka 4.3 that have no handler."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A list by what they are for."""
        from compat_tests.compatibility import NOT_HERE

        for subject, apis in NOT_HERE.items():
            yield f"- {subject}: {', '.join(apis.values())}"


class ExitCodes(Generated):
    """The exit codes of `kpybroker dev` and `kpybroker server`."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A table by code."""
        from kpybroker.cli.exit_codes import EXIT_CODES

        yield "| code | meaning |"
        yield "|---|---|"
        for code, meaning in EXIT_CODES:
            yield f"| {code} | {meaning} |"
        yield "| 130, 143 | ended at once by a second SIGINT or SIGTERM |"


class ControlMethods(Generated):
    """The methods of the control channel, by subject."""

    required_arguments = 0

    def markdown(self) -> Iterator[str]:
        """A heading for each module, and an entry for each method with its arguments and an example."""
        from kpybroker.control.catalogue import GROUPS

        lines = (ROOT / "docs" / "samples" / "testing" / "control-methods.txt").read_text(encoding="utf-8").splitlines()
        examples = dict(line.partition(" ")[::2] for line in reversed(lines))
        for group in GROUPS:
            methods = group.load()
            subject = docstring(ROOT.joinpath(*methods[0].function.__module__.split(".")).with_suffix(".py"))
            yield from ["", f"### {cell(subject).partition('.')[0].partition(':')[0]}", ""]
            for method in methods:
                yield from [f"````{{control-method}} {method.name}"]
                yield from [*(inspect.getdoc(method.function) or "").splitlines(), ""]
                if method.parameters:
                    yield from ["| argument | type | default |", "|---|---|---|"]
                yield from map(self._argument, method.parameters.values())
                call = f"curl -s 127.0.0.1:9099/v1/{method.name} -d '{examples[method.name]}'"
                yield from ["", "```sh", call, "```", "````", ""]

    def _argument(self, parameter: Any) -> str:
        default = "" if parameter.is_required else f"`{json.dumps(parameter.default)}`"
        return f"| `{parameter.name}` | {cell(parameter.described()['type'])} | {default} |"


def docstring(file: Path) -> str | None:
    """A module's docstring, without importing it."""
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


def cell(text: str | None) -> str:
    """A docstring's first paragraph as the text of a table's cell."""
    return " ".join((text or "").split("\n\n")[0].split()).replace("|", "\\|")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry point."""
    template = "pair: %s; control channel"
    app.add_object_type("control-method", "control-method", objname="control channel", indextemplate=template)
    for name, directive in {
        "bench-chart": BenchChart,
        "bench-table": BenchTable,
        "growth-chart": GrowthChart,
        "bench-conditions": BenchConditions,
        "package": Package,
        "api-table": Module,
        "command-help": CommandHelp,
        "client-commands": ClientCommands,
        "error-codes": ErrorCodes,
        "exit-codes": ExitCodes,
        "releases-compared": ReleasesCompared,
        "apis-not-served": ApisNotServed,
        "control-methods": ControlMethods,
        "fault-fields": FaultFields,
        "fault-names": FaultNames,
        "metric-tables": MetricTables,
        "metrics-absent": MetricsAbsent,
    }.items():
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
