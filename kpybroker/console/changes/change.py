"""`Change`: a form, its preview, the command that does the same, and what does it.

- `fields` are what the form asks for, `values` what was typed, as text.
- `plan` returns the rows of the preview. Those whose status begins with `would` are what would be changed. It raises
  CommandError where the input cannot be used; `in_field` says of which field, and `blame` does for errors of Kafka.
- `perform` gets the rows of the preview as they were shown, and returns them with what became of them.
- Before that the plan is made again, and `same` names what must be as it was shown: else nothing is done.
- `missing` returns why the cluster cannot do it at all; empty where it can. The form's button is off then.
- `typed_again` names fields; the value of the first that has one is typed again before it is done: for what deletes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import EXIT_USAGE, CommandError, Failures, usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpybroker.client.schemas.subjects import Subjects

Rows = list[dict[str, Any]]
Command = tuple[Sequence[str], Sequence[str]]
"""Words and options, then what is named, which may begin with a dash."""
Values = Mapping[str, str]
WOULD: Final = "would"
DIGITS_MAX: Final = 18
REFUSED: Final = "AUTHORIZATION_FAILED"
"""The end of the names of Kafka's errors that are about rights, and so about no field."""


class Field(NamedTuple):
    """An input of a form. `kind` is text, number, choice, lines, or secret, which is asked for at the end."""

    name: str
    label: str
    kind: str = "text"
    hint: str = ""
    placeholder: str = ""
    choices: Sequence[str] = ()
    is_required: bool = False
    default: str = ""


class Ask(NamedTuple):
    """What a plan and its action have: the cluster, what was typed, and where failures of items go."""

    cluster: Cluster
    values: Values
    failures: Failures
    subjects: Subjects | None = None
    """Of the schema registry, if there is one."""


class Key(NamedTuple):
    """A key that a form may be given, for its table of keys."""

    key: str
    value: str | None
    type: str
    meaning: str


def _nothing(_: Ask) -> Mapping[str, str]:
    return {}


def _none(_: Ask) -> Sequence[Key]:
    return ()


def _can(_: Ask) -> str:
    return ""


class Change(NamedTuple):
    """One kind of change. `title`, `button` and `back` have the fields' names in braces."""

    key: str
    title: str
    button: str
    fields: Sequence[Field]
    columns: Sequence[tuple[str, str]]
    """Titles of the rows' table, `#` before one of numbers, and the key of each."""
    needs: str
    """Which rights it needs of the console's user, in Kafka's words."""
    plan: Callable[[Ask], Rows]
    perform: Callable[[Ask, Rows], Rows]
    command: Callable[[Values], Command]
    back: Callable[[Values], str]
    """The page that shows what was changed."""
    same: Sequence[str] = ()
    typed_again: Sequence[str] = ()
    blame: Mapping[str, str] = {}
    note: str = ""
    curl: Callable[[Values], Sequence[tuple[str, str, str]]] | None = None
    """In place of a command, what the schema registry is asked for: method, path and body of each."""
    stdin: Callable[[Values], str] | None = None
    """What the command reads from standard input."""
    fill: Callable[[Ask], Mapping[str, str]] = _nothing
    """Values for fields that are empty when the form is first shown."""
    keys: Callable[[Ask], Sequence[Key]] = _none
    """Keys that the form's reader may look up."""
    missing: Callable[[Ask], str] = _can

    def read(self, given: Mapping[str, str]) -> dict[str, str]:
        """The values of the fields, without spaces around them; secrets as they are."""
        return {
            one.name: given.get(one.name, one.default)
            if one.kind in ("secret", "lines")
            else given.get(one.name, one.default).strip()
            for one in self.fields
        }

    def check(self, values: Values) -> None:
        """Raises CommandError for a value that is missing, or none of its choices."""
        for one in self.fields:
            if one.is_required and one.kind != "secret" and not values[one.name]:
                raise InField(one.name, usage(f"{one.label} is missing", one.hint or "fill it in"))
            if one.kind == "choice" and values[one.name] not in one.choices:
                raise InField(one.name, usage(f"{values[one.name][:50]!r} is no choice", f"one of {_list(one)}"))

    def name_again(self, values: Values) -> str:
        """What must be typed again before it is done; empty for nothing."""
        return next((values[name] for name in self.typed_again if values[name]), "")

    def field_of(self, error: CommandError) -> str:
        """The field that an error is about; empty for none."""
        if error.name.endswith(REFUSED):
            return ""
        return error.field if isinstance(error, InField) else self.blame.get(error.name, "")

    def command_text(self, values: Values, bootstrap: str, registry: str = "") -> str:
        """The command that does the same, as a shell reads it."""
        if self.curl is not None:
            return " && ".join(shlex.join(_curl(registry, *one)) for one in self.curl(values))
        words, names = self.command(values)
        dashes = ["--"] if any(name.startswith("-") for name in names) else []
        command = shlex.join(["kpybroker", *words, "-b", bootstrap, *dashes, *names])
        return command if self.stdin is None else f"printf %s {shlex.quote(self.stdin(values))} | {command}"


def _curl(registry: str, method: str, path: str, body: str) -> list[str]:
    found = ["curl", "-f", "-X", method, f"{registry}{path}"]
    return [*found, "-H", "Content-Type: application/vnd.schemaregistry.v1+json", "-d", body] if body else found


def _list(field: Field) -> str:
    return ", ".join(one or "nothing" for one in field.choices)


class InField(CommandError):
    """Input of a field that cannot be used."""

    def __init__(self, field: str, error: CommandError) -> None:
        super().__init__(error.cause, error.fix, EXIT_USAGE, name=error.name)
        self.field = field


@contextmanager
def in_field(name: str) -> Iterator[None]:
    """Input that cannot be used is that of this field."""
    try:
        yield
    except InField:
        raise
    except CommandError as error:
        if error.exit_code != EXIT_USAGE:
            raise
        raise InField(name, error) from None


class Raising(Failures):
    """For a change of one thing: its failure is that of the change."""

    def __init__(self) -> None:
        super().__init__(silent=True)

    def add(self, item: str, error: CommandError) -> dict[str, str]:
        """Raises it."""
        raise error


def number(values: Values, name: str, low: int, high: int) -> int | None:
    """A field as a number within bounds; None for an empty one. Raises CommandError."""
    text = values[name].replace("_", "")
    if not text:
        return None
    with in_field(name):
        if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()) or len(text) > DIGITS_MAX:
            raise usage(f"{values[name][:50]!r} is not a whole number", f"write one from {low} to {high}")
        if not low <= int(text) <= high:
            raise usage(f"{text} is out of bounds", f"write a number from {low} to {high}")
    return int(text)


def lines(values: Values, name: str) -> list[str]:
    """The lines of a field that are not empty."""
    return [line.strip() for line in values[name].splitlines() if line.strip()]


def given(*options: tuple[str, str | int | None]) -> list[str]:
    """The options of a command that have a value."""
    return [text for option, value in options if value not in (None, "") for text in (option, str(value))]
