"""Contexts: name spaces of subjects, each with ids of its own.

A subject in a context is written `:.context:subject` everywhere: in paths, responses and records. One without a context
is in the default one, `.`; `:.:subject` is another way to write it. `:.context:`, without a subject, stands for the
context in configurations and modes. `:*:` is all contexts, in prefixes only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT: Final = "."
GLOBAL: Final = ".__GLOBAL"
"""Its configuration and mode hold for all contexts that have none."""
ALL: Final = ":*:"
START: Final = ":."


class Qualified(NamedTuple):
    """A context, with its dot, and a subject without the context."""

    context: str
    name: str

    @property
    def subject(self) -> str:
        """As it is written."""
        return mark(self.context) + self.name


def split(subject: str) -> Qualified:
    """Of any text: one that does not start with a context is in the default one."""
    if not subject.startswith(START):
        return Qualified(DEFAULT, subject)
    context, _, name = subject[1:].partition(":")
    return Qualified(context, name)


def of(subject: str) -> str:
    """The context of a subject."""
    return split(subject).context


def normal(subject: str) -> str:
    """The one way to write it."""
    return split(subject).subject


def mark(context: str) -> str:
    """What a subject in the context starts with; empty for the default one."""
    return "" if context == DEFAULT else f":{context}:"


def named(text: str) -> str:
    """The context of `/contexts/{text}`: with or without its dot and colons. Raises ValueError for no name."""
    name = text.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise ValueError(f"Context name '{name[:100]}' cannot contain a colon")
    return name if name.startswith(".") else f".{name}"


def resolved(context: str, subject: str) -> str:
    """The subject that a schema in the context refers to: one without a context is in the schema's own."""
    own = split(subject)
    return Qualified(context if own.context == DEFAULT else own.context, own.name).subject


def matches(prefix: str, subject: str) -> bool:
    """Whether a subject starts with a prefix: one without a context means the default one."""
    if prefix.startswith(ALL):
        return split(subject).name.startswith(prefix.removeprefix(ALL))
    if prefix.startswith(START) and ":" not in prefix[1:]:
        return subject.startswith(prefix)
    wanted = split(prefix)
    own = split(subject)
    return own.context == wanted.context and own.name.startswith(wanted.name)


def contains(whole: str | None, subject: str) -> bool:
    """Whether `whole` is the subject itself, its context, or everything (None and `:.__GLOBAL:`)."""
    if whole is None or whole == subject:
        return True
    outer = split(whole)
    return not outer.name and outer.context in (GLOBAL, of(subject))
