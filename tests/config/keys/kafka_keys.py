"""The keys of Kafka 3.9.1 and 4.3.1, recorded from their jars by `compat_tests/config`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kpybroker.config.values import Validator

HERE: Final = Path(__file__).parent
FILES: Final = {release: HERE / f"kafka_{release.replace('.', '_')}_keys.tsv" for release in ("3.9.1", "4.3.1")}


class Defined(NamedTuple):
    """One key of a ``ConfigDef``. `default` None: it is null; `validator` is its text."""

    kind: str
    name: str
    type: str
    default: str | None
    validator: str
    importance: str
    is_listed: bool
    mode: str


@cache
def defined(release: str, kind: str) -> dict[str, Defined]:
    """The keys of brokers or topics in a release, by name."""
    rows = (line.split("\t") for line in FILES[release].read_text().splitlines())
    found = {}
    for of, name, type_name, default, validator, importance, listed, mode in rows:
        if of == kind:
            text = None if default == "null" else default
            found[name] = Defined(of, name, type_name, text, validator, importance, listed == "listed", mode)
    return found


def java_text(validator: Validator) -> str:
    """What ``toString`` of the same rule has in Kafka."""
    kind, *arguments = validator
    if kind == "range":
        low, high = arguments
        return f"[{low},...]" if high is None else f"[{low},...,{high}]"
    if kind in ("one_of", "list_of"):
        return f"[{', '.join(arguments)}]"
    if kind == "any_case_one_of":
        return f"(case insensitive) [{', '.join(arguments)}]"
    if kind == "distinct":
        return f"[{', '.join(arguments[1:])}]" if len(arguments) > 1 else ""
    others = {"anything": "null", "non_empty": "non-empty string", "non_null": "non-null string"}
    return others.get(kind, str(kind))
