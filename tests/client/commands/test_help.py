"""Every command has its help, with an example of itself."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from kpybroker.cli.lazy import CLIENT_COMMANDS
from kpybroker.cli.main import cli
from tests.support.programs.command_line import invoke
from tests.support.programs.missing import forget, uninstall


def commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words of each command that is no group."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*words, name))
    else:
        yield words


def client_commands() -> list[tuple[str, ...]]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in CLIENT_COMMANDS}
    return [words for name, command in found.items() if command is not None for words in commands(command, (name,))]


@pytest.mark.parametrize("words", client_commands(), ids=" ".join)
def test_the_help_has_an_example_and_fits_a_terminal(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*words, "--help"], prog_name="kpybroker", terminal_width=80)
    assert result.exit_code == 0
    assert re.search(rf"Examples:\n(.*\n)*?.*kpybroker {' '.join(words)}", result.output)
    text, _, examples = result.output.partition("Examples:")
    assert max(map(len, text.splitlines())) <= 80
    assert max(map(len, examples.splitlines())) <= 100


def test_every_command_that_moves_or_destroys_asks_for_execute() -> None:
    changing = {"balance", "delete", "trim", "seek", "offset-delete", "abort", "import", "move", "cancel", "elect"}
    for words in client_commands():
        help_text = CliRunner().invoke(cli, [*words, "--help"]).output
        assert ("--execute" in help_text) == (words[-1] in changing), words


def test_every_command_knows_the_connection_and_formats() -> None:
    for words in client_commands():
        if words == ("completion",) or words[0] in ("metrics", "profile"):  # which talk to no cluster
            continue
        help_text = CliRunner().invoke(cli, [*words, "--help"]).output
        for option in ("--bootstrap-server", "--command-config", "--option", "--timeout"):
            assert option in help_text, words
        assert ("--format" in help_text) == (words not in (("replay",), ("mirror",))), words


@pytest.mark.not_quick
def test_the_version_and_dev_import_nothing_of_the_clients() -> None:
    code = (
        "import sys; from kpybroker.cli.main import cli\n"
        "try: cli(['dev', '--help'], standalone_mode=False)\n"
        "finally: print([m for m in sys.modules if m.startswith(('kpybroker.client', 'confluent_kafka', 'rich'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.not_quick
def test_declarations_import_click_and_nothing_else() -> None:
    """All commands are declared for the list of them; of kpybroker only what their options need is imported."""
    code = (
        "import sys; known = set(sys.modules); from kpybroker.cli.main import cli\n"
        "cli(['--help'], standalone_mode=False)\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - known}\n"
        "print(sorted(new - sys.stdlib_module_names - {'kpybroker', 'click', 'colorama'}))\n"
        "print([m for m in sys.modules if m.startswith(('kpybroker.wire', 'kpybroker.client.actions'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["[]", "[]"]


@pytest.mark.parametrize("package", ["confluent_kafka", "rich"])
def test_a_missing_extra_is_named_in_one_line(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, "kpybroker.client.actions", "kpybroker.client.show.tables")
    uninstall(monkeypatch, package)
    if package == "rich":
        from kpybroker.client.show.cells import Column
        from kpybroker.client.show.output import Output

        with pytest.raises(ModuleNotFoundError):
            Output("table").rows([{"a": 1}], [Column("A", "a")])
        return
    result = invoke(monkeypatch, "topic", "list")
    assert result.code == 2
    assert result.err.splitlines() == [
        "kpybroker: this command needs confluent_kafka, which is not installed",
        "fix: pip install 'kpybroker[tools]'",
    ]


def test_completion_scripts_are_printed_and_name_the_command() -> None:
    for shell in ("bash", "zsh", "fish"):
        result = CliRunner().invoke(cli, ["completion", shell])
        assert result.exit_code == 0
        assert f"_KPYBROKER_COMPLETE={shell}_complete" in result.output
    assert CliRunner().invoke(cli, ["completion", "tcsh"]).exit_code == 2


def groups(command: click.Command, words: tuple[str, ...], context: click.Context) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        yield words
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None:
                yield from groups(inner, (*words, name), context)


@pytest.mark.parametrize(
    "words", list(groups(cli, (), click.Context(cli))), ids=lambda words: " ".join(words) or "kpybroker"
)
def test_no_summary_is_cut(words: tuple[str, ...]) -> None:
    output = CliRunner().invoke(cli, [*words, "--help"], prog_name="kpybroker", terminal_width=80).output
    summaries = output.partition("\nCommands:\n")[2].partition("\n\n")[0]
    assert len(summaries.splitlines()) >= 2
    assert "..." not in summaries
    assert max(map(len, summaries.splitlines())) <= 80
