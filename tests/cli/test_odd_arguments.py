"""Every command, found in the tree of commands, with arguments that are no UTF-8, empty, or beyond any number."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest

from kpybroker.cli.main import cli
from kpybroker.client.commands.options import AnyBytes
from tests.support.programs.command_line import invoke

ODD = "\udcff\udcfe\x1b[31m"
"""As Python has an argument of the bytes FF FE."""


def commands(found: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The words and the command of each leaf."""
    if not isinstance(found, click.Group):
        yield words, found
        return
    context = click.Context(found)
    for name in found.list_commands(context):
        inner = found.get_command(context, name)
        assert inner is not None, name
        yield from commands(inner, (*words, name))


def words_with(command: click.Command, odd: click.Parameter, text: str) -> list[str]:
    """Arguments that are enough for the command, with a text for one of them."""
    words = []
    for param in command.params:
        value = text if param is odd else "x"
        if isinstance(param, click.Argument):
            words += [value] if param is odd or param.required else []
        elif param is odd or param.required:
            words += [f"{param.opts[-1]}={value}"]
    return words


def of_type(kind: type[Any]) -> list[tuple[str, click.Command, click.Parameter]]:
    return [
        (" ".join(words), command, param)
        for words, command in commands(cli)
        for param in command.params
        if type(param.type) is kind or (kind is not click.types.StringParamType and isinstance(param.type, kind))
    ]


TEXTS = of_type(click.types.StringParamType)
NUMBERS = [*of_type(click.IntRange), *of_type(click.FloatRange)]


def ids(found: list[tuple[str, click.Command, click.Parameter]]) -> list[str]:
    return [f"{words} {param.opts[-1]}" for words, _, param in found]


def test_the_tree_is_walked() -> None:
    assert len(TEXTS) > 60
    assert len(NUMBERS) > 30
    assert len(of_type(AnyBytes)) >= 7


@pytest.mark.parametrize(("words", "command", "param"), TEXTS, ids=ids(TEXTS))
def test_a_text_that_is_no_utf8_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: str, command: click.Command, param: click.Parameter
) -> None:
    result = invoke(monkeypatch, *words.split(), *words_with(command, param, ODD))
    assert result.code == 2
    assert "no UTF-8" in result.err or "Invalid value" in result.err, result.err
    secret = invoke(monkeypatch, *words.split(), *words_with(command, param, f"password=topsecret{ODD}"))
    assert secret.code == 2
    assert "topsecret" not in secret.err


@pytest.mark.parametrize(("words", "command", "param"), NUMBERS, ids=ids(NUMBERS))
def test_a_number_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: str, command: click.Command, param: click.Parameter
) -> None:
    for text in ("nan", "-1e400", "x\udcff", "", "-99999999999999999999999"):
        result = invoke(monkeypatch, *words.split(), *words_with(command, param, text))
        assert result.code == 2, (text, result)


@pytest.mark.not_quick
@pytest.mark.skipif(sys.platform == "win32", reason="arguments of Windows are text")
@pytest.mark.parametrize(
    "words", [("topic", "describe"), ("group", "describe"), ("topic", "create"), ("dev", "--host"), ("nothing",)]
)
def test_bytes_of_the_command_line_end_no_process(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "kpybroker", *words, ODD]  # as bytes again
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 2, done.stderr
    assert b"kpybroker: " in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stderr


@pytest.mark.parametrize("words", ["topic describe", "group describe", "topic consume x -g", "group seek --to=start"])
def test_an_empty_name_is_refused(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    result = invoke(monkeypatch, *words.split(), "")
    assert result.code == 2
    assert "it is empty" in result.err
