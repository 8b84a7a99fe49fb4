"""`Change`: a form, its preview, the command that does the same, and what does it.

- `fields` are what the form asks for, `values` what was typed, as text.
- `plan` returns the rows of the preview. Those whose status begins with `would` are what would be changed. It raises
  CommandError where the input cannot be used; `in_field` says of which field, and `blame` does for errors of Kafka.
- `perform` gets the rows of the preview as they were shown, and returns them with what became of them.
- Before that the plan is made again, and `same` names what must be as it was shown: else nothing is done.
- `missing` returns why the cluster cannot do it at all; empty where it can. The form's button is off then.
- `more_fields` are those of a plugin: their names begin with `config.`, or with `secret.` for what is asked last.
- `typed_again` names fields; the value of the first that has one is typed again before it is done: for what deletes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import EXIT_USAGE, CommandError, Failures, usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpybroker.client.schemas.subjects import Subjects
    from kpybroker.console.queries.connect.rest import Connect

Rows = list[dict[str, Any]]
Command = tuple[Sequence[str], Sequence[str]]
"""Words and options, then what is named, which may begin with a dash."""
Values = Mapping[str, str]
WOULD: Final = "would"
DIGITS_MAX: Final = 18
REFUSED: Final = "AUTHORIZATION_FAILED"
"""The end of the names of Kafka's errors that are about rights, and so about no field."""
OF_PLUGIN: Final = "config."
SECRET_OF_PLUGIN: Final = "secret."
"""What the names of fields begin with that a plugin has: its keys, and those of them that are secrets."""


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
    is_folded: bool = False
    """Whether it is out of sight while it is empty."""


class Call(NamedTuple):
    """A request of Kafka Connect's REST; `body` is sent as JSON."""

    method: str
    path: str
    body: Any = None


class Ask(NamedTuple):
    """What a plan and its action have: the cluster, what was typed, and where failures of items go."""

    cluster: Cluster
    values: Values
    failures: Failures
    subjects: Subjects | None = None
    """Of the schema registry, if there is one."""
    connects: Mapping[str, Connect] = {}
    """Kafka Connects by their names."""


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
    calls: Callable[[Values, Rows], Sequence[Call]] | None = None
    """In place of a command, what Kafka Connect is asked for to do what the rows of a preview say."""
    more_fields: Callable[[Ask], Sequence[Field]] | None = None
    """Fields that depend on what was typed: the keys of a plugin."""

    def read(self, given: Mapping[str, str]) -> dict[str, str]:
        """The values of the fields, without spaces around them; secrets as they are."""
        found = {
            one.name: given.get(one.name, one.default)
            if one.kind in ("secret", "lines")
            else given.get(one.name, one.default).strip()
            for one in self.fields
        }
        if self.more_fields is not None:
            own = sorted(name for name in given if name.startswith((OF_PLUGIN, SECRET_OF_PLUGIN)))
            found |= {name: text for name in own if (text := given[name].strip())}
        return found

    def is_secret(self, name: str) -> bool:
        """Whether the value of this field is never shown, signed or logged."""
        if self.more_fields is not None and name.startswith(SECRET_OF_PLUGIN):
            return True
        return any(one.name == name and one.kind == "secret" for one in self.fields)

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

    def fields_of(self, error: CommandError) -> Mapping[str, str]:
        """The fields that an error is about, with what is wrong and what to do; empty for none."""
        if error.name.endswith(REFUSED):
            return {}
        if isinstance(error, InFields):
            return error.fields
        field = error.field if isinstance(error, InField) else self.blame.get(error.name, "")
        return {field: f"{error.cause}. {error.fix}"} if field else {}

    def connect_text(self, values: Values, rows: Rows, url: str) -> str:
        """The requests of Kafka Connect that do the same, as a shell reads them."""
        assert self.calls is not None
        return " && ".join(shlex.join(_curl_json(url, one)) for one in self.calls(values, rows))

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


def _curl_json(url: str, call: Call) -> list[str]:
    found = ["curl", "-f", "-X", call.method, f"{url}{call.path}"]
    if call.body is None:
        return found
    return [*found, "-H", "Content-Type: application/json", "-d", json.dumps(call.body, ensure_ascii=False)]


def _list(field: Field) -> str:
    return ", ".join(one or "nothing" for one in field.choices)


class InField(CommandError):
    """Input of a field that cannot be used."""

    def __init__(self, field: str, error: CommandError) -> None:
        super().__init__(error.cause, error.fix, EXIT_USAGE, name=error.name)
        self.field = field


class InFields(CommandError):
    """Input of several fields that cannot be used: what is wrong with each."""

    def __init__(self, fields: Mapping[str, str], fix: str) -> None:
        cause = "a value cannot be used" if len(fields) == 1 else f"{len(fields)} values cannot be used"
        super().__init__(cause, fix, EXIT_USAGE)
        self.fields = fields


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
