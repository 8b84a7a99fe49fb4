"""Words that keep readers out, and lines of docs that are too long.

The words are those of which no use is plain English in this project; STYLE has the longer list, for writers. One more
is for what a broker sends back: it is a response everywhere, in programs and scenarios of tests too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

LINE_LENGTH_MAX = 120
KAFKAS_TEXT = "# Kafka's text"
"""A line that ends with this comment may have any word."""
REPLACEMENTS = {
    r"mend(?:s|ed|ing)?": "fix",
    r"whoever": "a caller that, a client that",
    r"lest": "so that ... not",
    r"amid": "during",
    r"anew": "again",
    r"hence": "so",
    r"owed": "pending",
    r"lent": "borrowed",
    r"told": "reported, received",
    r"tells": "reports, says",
    r"nobody": "no one, nothing",
    r"beside": "next to, while",
    r"story|stories": "procedure, scenario, example",
    r"for ever": "forever",
    r"let go of": "released",
    r"in hand": "buffered",
    r"borne": "tolerated",
    r"meanwhile": "during that time, in between, at the same time",
    r"what is no(?= )(?! (?:longer|more)\b)": "what is not a, anything but",
}
_BAD = {
    word: re.compile(
        rf"(?<![\w/.-])(?:{word})(?![\w-])|(?<=_)(?:{word})(?![A-Za-z0-9])|(?<![\w/.-])(?:{word})(?=_)", re.IGNORECASE
    )
    for word in REPLACEMENTS
}
"""Words of prose, and those between the underscores of an identifier."""
_ANY_BAD = re.compile("|".join(REPLACEMENTS), re.IGNORECASE)
_OF_PROSE = (".py", ".md")
_OF_RESPONSES = (*_OF_PROSE, ".txt", ".java", ".scala", ".js", ".mjs", ".ts", ".go", ".sh", ".yaml", ".toml")
_ANSWER = re.compile("answer", re.IGNORECASE)
"""In any form, in a longer word and in a name too: a peer responds, and what it sends is a response."""
_NAMES_THAT_STAY = re.compile(
    r'never_answer|NeverAnswer|answer_predicate|"answered"|\bANSWERED\b|mockito\.stubbing\.Answer|\bAnswer<|\.answer\('
)
"""Public names of the test kit, and Mockito's."""


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: what is wrong`, for Python and Markdown files; generated messages and this file are left out."""
    for file in _files(paths):
        yield from _of_file(file)


def other_responses(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: what is wrong`, where a name or a text has the other word; output in a page may have it, and so may
    what checks for it.
    """
    for file in _files(paths, _OF_RESPONSES):
        if "house" in file.parts:
            continue
        is_output = False
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            if file.suffix == ".md" and line.startswith("```"):
                is_output = not is_output
            if not is_output and KAFKAS_TEXT not in line and _ANSWER.search(_NAMES_THAT_STAY.sub("", line)):
                yield f"{file}:{number}: 'answer': write response, respond, or for other peers reply or result"


def _files(paths: Iterable[Path], suffixes: Collection[str] = _OF_PROSE) -> Iterator[Path]:
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in suffixes and "messages" not in file.parts and file != Path(__file__).resolve():
                yield file


def _of_file(file: Path) -> Iterator[str]:
    is_table_or_code = False
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        for word, pattern in _BAD.items() if _ANY_BAD.search(line) else ():
            if (match := pattern.search(line)) and KAFKAS_TEXT not in line:
                yield f"{file}:{number}: {match.group()!r}: write {REPLACEMENTS[word]}"
        if file.suffix == ".md":
            if line.startswith("```"):
                is_table_or_code = not is_table_or_code
            if len(line) > LINE_LENGTH_MAX and not is_table_or_code and not line.startswith("|"):
                yield f"{file}:{number}: {len(line)} characters: at most {LINE_LENGTH_MAX}"
