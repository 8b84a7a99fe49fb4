"""Patterns of topics next to RE2/J 1.8, which Kafka 4.3.1 uses: the same verdict on each pattern and each name.

Patterns are random: from pieces of the language, valid ones with a few characters changed, and lists of what RE2's
documentation has. Where the two part is listed in DIFFERENCES, each with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from compat_tests.groups.kafka_rules import ask_kafka
from kpybroker.core.patterns.nodes import ANY_TEXT, TOPIC_NAMES, Subject
from kpybroker.core.patterns.topics import compile_pattern
from kpybroker.wire.errors import KafkaError

COUNT = 6000
NAMES_EACH = 8
PREFIX = "is not a valid regular expression: "


def _words(text: str) -> list[str]:
    return text.split()


PIECES = _words(r"""
a b A B 0 9 - _ . ^ $ | .* [ab] [^a] [a-c0-9] []a] [^]-] [a-] [A-Z] [^a-z_] [.-9] topic orders- eu. (?:) () a{,2} a{
\d \D \w \W \s \S \. \- \_ \a \t \x41 \x{62} \101 \0 \b \B \A \z \Qa.b\E \Q \E \pL \PN \p{Lu} \p{^Ll} \P{Nd} \p{Latin}
\p{Greek} \p{Any} [\d_] [^\W] [\pL-] [^\PL\d] [[:alpha:]] [[:^digit:]] [[:word:]-] [[:alnum:]_] [^[:upper:]] é я } ] -9
(?i) (?s) (?m) (?U) (?-i) (?is-m) (?i:a) a{2} b{1,3} c{0}
""")
REPEATS = _words("* + ? *? +? ?? {2} {1,} {0,2} {3}? {1,2} {2,5} {0} {,3}")
ODD_REPEATS = _words("{1000} {1001} {2,1} ** {2}{3}")
NOISE = _words(r"( ) [ ] { } * + ? | \ ^ $ . - , : < > = ! P # (? (?P< (?< (?= (?! (?> [: :] \1 \8 {2}")
LISTED = (
    *_words(r"""
\C \Z \z \a\f\t\n\r\v \cA \e \h \H \K \R \X \G \N \u0041 \pZ \p{Han} \p{L} \p{Cn} \p{LC} \p{L&} \p{Script=Greek}
\p{IsGreek} \p{Foo} \p \p{ \p{L \pX (?P<n>a) (?P<n>a)(?P<n>b) (?P<n>a)(?P=n) (?<n>a) (?'n'a) (?P<n>a)\k<n> (?P<1>a)
(?P<a_1>b) (?P<я>a) (?#c) (?z) (?) (?-) (?i-) (?i (?: (? (?P (?P< (?P<n (?P<n> a** a*+ a++ a?+ a{2}{3} a{2}* (a*)*
(a{100}){10} (a{100}){11} ((a{10}){10}){11} a{99999999999} a{-1} a{1,-1} x{1001} x{1000} x{0,1000} x{0,1001} ^* $+ \b+
) a) (a)) ( ((a) [ [] [^] [^ [a [a- [z-a] [a-\d] [\d-a] [a-b-c] [[a] [[.a.]] [[=a=]] [[:foo:]] [[:alpha:] [:alpha:]
(?i)\p{Ll}
a{+ a{* {+ a{{2} a{b+ a{b*+ [[:]a] [^[:]-] (?<=a) (?<!a) (?=a) (?!a) (?>a) (?|a) [[:ascii:]]+ [[:blank:]]
[[:^word:]]+ [[:word:]-a] | || a||b (|) (|a)* * + ? |* (*) ^^ $$ a^b a$b (?m)a$ (?i)ſ (?i)K
\ a\ \x \x4 \xg \x{ \x{} \x{110000} \x{10FFFF}|a [^\x{430}]+ \777 \08 \é é+|a [а-я]|a [^é]+ 😃|a (a*)*b (a|aa)+ (x+x+)+y
"""),
    *("", " ", "(?x)a b", "a{ 1}", "a{1 }", "\n", "(?m)a\n^b", "\0", "a" * 250, "[ab]" * 200, ".*" * 100, r"\pL{200}"),
    *("([ab]c*){0,200}" * 50, "a?" * 100 + "a" * 100, "(" * 500 + "a" + ")" * 500, "(?:" * 990 + "a" + ")" * 990),
)

OTHER_PIECES = _words(r"""
ä Ä ß ẞ σ ς Σ я Я 中 😃 𐐀 𐐨 İ ı ǅ å Å K ſ ä̈ [ä] [^ä] [а-я] [a-я] [Α-Ω] [^а-я] [^\x00-\x7f] \x{1F603} \xe4 \x{10400}
[[:^alpha:]] [[:^ascii:]] [\W] [^\W] [^\w-] \pL \PL \p{Lu} \P{Lu} \pM \pN \p{Nd} \pZ \pS \p{So} \p{Co} \p{^L}
\p{Greek} \P{Greek} \p{Cyrillic} \p{Han} \p{Common} \P{Common} \p{Inherited} \p{Arabic} \p{Deseret} \p{Latin}
[\p{Greek}я] [^\p{Greek}я] [\PLä] (?s). (?i)я (?i)[а-я] (?i)σ (?i)[^σ] (?i)𐐀 (?i)\p{Greek} .. .{2}
""")
OTHER_NAMES = _words(
    "ä Ä ß ẞ σ ς Σ я Я 中 文 😃 𐐀 𐐨 İ ı ǅ ǆ å Å Å K k ſ s S ä́ ٣ 4 Ω Ω ω \ue000 \ufffd \u0378 a A b - _"
)

Verdict = tuple[str | None, str]
"""What is wrong with the pattern, or None; and a 1 or 0 for each name."""

DIFFERENCES: dict[str, Callable[[str, Verdict, Verdict], bool]] = {
    "RE2/J's table of what equals small letters when case is ignored lacks the A": (
        lambda pattern, ours, theirs: "Ll}" in pattern and "i" in pattern and ours[0] is None and theirs[0] is None
    ),
    "a pattern may need 8192 instructions here": (
        lambda pattern, ours, theirs: ours[0] == "it needs more than 8192 instructions" and theirs[0] is None
    ),
}
"""Why they part, and whether that is so for a pattern and both verdicts."""


def random_patterns(listed: Sequence[str], pieces: Sequence[str]) -> list[str]:
    random = Random(8)
    found = list(listed)
    while len(found) < COUNT:
        pattern = _written(random, 3, pieces)
        if random.random() < 0.4:
            pattern = _damaged(random, pattern)
        found.append(pattern)
    return found


def _written(random: Random, depth: int, pieces: Sequence[str]) -> str:
    parts = []
    for _ in range(random.randint(1, 4)):
        part = random.choice(pieces)
        if depth and random.random() < 0.3:
            part = f"{random.choice(('(', '(?:', '(?i:', '(?P<g>'))}{_written(random, depth - 1, pieces)})"
        if random.random() < 0.4:
            part += random.choice(REPEATS if random.random() < 0.97 else ODD_REPEATS)
        parts.append(part)
    return random.choice(("", "", "|")).join(parts)


def _damaged(random: Random, pattern: str) -> str:
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(pattern) + 1)
        pattern = pattern[:at] + random.choice(NOISE) + pattern[at + random.randint(0, 1) :]
    return pattern


def other_names_for(random: Random) -> list[str]:
    return ["".join(random.choices(OTHER_NAMES, k=random.choice((1, 1, 1, 2, 2, 3)))) for _ in range(2 * NAMES_EACH)]


def names_for(random: Random) -> list[str]:
    words = ("a", "b", "ab", "aa", "A", "0", "9", "-", "_", ".", "topic", "orders-", "eu.", "x", "a.b", "k", "s")
    return ["".join(random.choices(words, k=random.randint(1, 4))) for _ in range(NAMES_EACH)]


def ours(pattern: str, names: Sequence[str], subject: Subject) -> Verdict:
    try:
        compiled = compile_pattern(pattern, subject=subject)
    except KafkaError as error:
        return error.message.partition(PREFIX)[2].removesuffix("."), ""
    return None, "".join(str(int(compiled.matches(name))) for name in names)


def theirs(line: str) -> Verdict:
    kind, _, rest = line.partition(" ")
    return (None, rest) if kind == "valid" else (rest, "")


def parting(asked: Sequence[tuple[str, list[str]]], subject: Subject) -> tuple[list[Any], set[str]]:
    """Patterns on which the verdicts part without a reason, and the reasons of the others."""
    lines = ask_kafka(" ".join(["pattern", pattern.encode().hex(), *names]) for pattern, names in asked)
    unexplained = []
    seen = set()
    for (pattern, names), line in zip(asked, lines, strict=True):
        verdicts = ours(pattern, names, subject), theirs(line)
        if verdicts[0] != verdicts[1]:
            reasons = [reason for reason, explains in DIFFERENCES.items() if explains(pattern, *verdicts)]
            seen.update(reasons)
            if not reasons:
                unexplained.append((pattern, *verdicts, names))
    return unexplained, seen


def test_the_same_verdicts() -> None:
    random = Random(9)
    asked = [(pattern, names_for(random)) for pattern in random_patterns(LISTED, PIECES)]
    unexplained, seen = parting(asked, TOPIC_NAMES)
    assert unexplained == []
    assert seen == DIFFERENCES.keys()


def test_the_same_verdicts_on_any_text() -> None:
    random = Random(10)
    pieces = (*PIECES, *OTHER_PIECES, *OTHER_PIECES)
    asked = [(pattern, other_names_for(random)) for pattern in random_patterns(OTHER_PIECES, pieces)]
    unexplained, _ = parting(asked, ANY_TEXT)
    assert unexplained == []
