"""Patterns of topics: RE2's language on whole names, Kafka's texts for errors, and bounds for what is large."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.patterns.nodes import ANY_TEXT
from kpybroker.core.patterns.program import PROGRAM_SIZE_MAX
from kpybroker.core.patterns.topics import PATTERN_LENGTH_MAX, Pattern, compile_pattern, pattern_problem, resolve
from kpybroker.core.topic_names import MAX_NAME_LENGTH
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.yield_budget import WorkBudget

LONG = "a" * MAX_NAME_LENGTH


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", "", "a"),
        ("orders", "orders", "orders2 my-orders Orders"),
        ("a.c", "abc a.c a-c", "ac abbc"),
        ("(?s)a.c", "abc", "ac"),
        ("[abc]+", "a cab", "d ad"),
        ("[^abc]+", "d -", "a da"),
        ("[a-c0-3]*", "a1b2", "d4"),
        ("[]a]", "a", "b"),
        ("[^]a]", "b", "a"),
        ("[a-]+", "a -", "b"),
        (r"\d+", "0 42", "a 4a"),
        (r"\D+", "a -", "4"),
        (r"\w+", "a_1", "a-1 a.1"),
        (r"\W+", "- .", "a _ 1"),
        (r"a\s?b", "ab", "a-b"),
        (r"\S+", "a-b", ""),
        ("[[:alpha:]]+", "ab AB", "a1"),
        ("[[:^alpha:]]+", "1-", "a"),
        (r"[\d[:lower:]_]+", "a1_", "A"),
        (r"\pN+", "123", "a"),
        (r"\p{Greek}", "", "a"),
        (r"\P{Greek}+", "abc", ""),
        (r"\p{^Lu}+", "abc-1", "aB"),
        (r"[^\PL]+", "abc", "a1"),
        ("a|b|cd", "a b cd", "c d ab"),
        ("|a", "a", "b"),
        ("a*", "aaa", "b"),
        ("a+?", "a aa", "b"),
        ("a??b", "b ab", "aab"),
        ("a{3}", "aaa", "aa aaaa"),
        ("a{2,}", "aa aaaa", "a"),
        ("a{1,2}", "a aa", "aaa"),
        ("a{2,3}?", "aa aaa", "a aaaa"),
        ("a{,2}", "", "a aa"),  # not a repetition
        ("(a)(?:b)(?P<name>c)", "abc", "ab"),
        ("(?i)abc", "ABC aBc", "abd"),
        ("a(?i:b)c", "abc aBc", "Abc"),
        ("(?i)a(?-i)b", "Ab ab", "aB"),
        ("(?U)a+", "aaa", "b"),
        ("^orders$", "orders", "orders1"),
        (r"\Aorders\z", "orders", "orders1"),
        ("(?m)^a$", "a", "ab"),
        (r"a\b-\bb", "a-b", "a-"),
        (r"a\Bb", "ab", "a-b"),
        (r"a\.b", "a.b", "a-b"),
        (r"\Qa.b+\E.*", "", "aXb"),
        (r"\x41\x{42}\103", "ABC", "abc"),
        ("é|a", "a", "e"),
        ("[^é]+", "abc", ""),
        ("[a-я]+", "abc", "A"),
        ("(?i)ſ", "s S", "a"),
    ],
)
def test_syntax(pattern: str, matching: str, others: str) -> None:
    compiled = compile_pattern(pattern)
    assert compiled.text == pattern
    assert [name for name in matching.split() if not compiled.matches(name)] == []
    assert [name for name in others.split() if compiled.matches(name)] == []


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (".", "a ä 中 😀", "ab a\u0308"),
        ("..", "ab a\u0308 中文", "a 😀"),
        ("ä", "ä", "Ä a"),
        ("(?i)ä", "ä Ä", "a"),
        ("[^a]", "ä b 😀", "a"),
        ("[^ä]+", "abc Ä中", "ä aä"),
        ("[а-я]+", "мир", "МИР a"),
        ("(?i)[а-я]+", "мир МИР", "a"),
        ("[a-я]", "a ä я", "A Ѐ".replace("Ѐ", "Ҁ")),
        (r"\x{1F600}", "😀", "a"),
        (r"\w+", "a1_", "ä Я"),
        (r"\W+", "ä Я -", "a"),
        (r"\D", "ä \u0663", "4"),
        (r"\d", "4", "\u0663"),
        ("[[:^alpha:]]", "ä 1", "a"),
        ("[[:^ascii:]]+", "äЯ中", "a äa"),
        (r"\pL+", "äЯ中a", "1 ä1"),
        (r"\p{Lu}", "A Ä Я", "a ä 中"),
        (r"\p{Nd}", "4 \u0663", "a"),
        (r"\p{Any}", "a ä 😀 \ue000", "ab"),
        (r"\pC", "\ue000", "a \u0378"),  # the second one is no character
        (r"[^\pL]", "1 😀", "a ä"),
        (r"[\W\d]+", "ä1-", "ab"),
        ("(?i)k", "k K \u212a", "a"),
        ("(?i)\u212a", "k K \u212a", "a"),
        ("(?i)σ", "σ ς Σ", "s"),
        ("(?i)ß", "ß ẞ", "s"),
        ("(?i)İ", "İ", "i I ı"),
        ("(?i)[^k]", "ä a", "k K \u212a"),
        ("(?i)[k]+", "kK\u212a", "a"),
        ("(?i)𐐀", "𐐀 𐐨", "a"),
        (r"a\b.", "aä", "ab"),  # boundaries are those of ASCII words
        (r".\B.", "ää ab", "aä"),
        ("ä{2}", "ää", "ä äää"),
        (".{300}", "ä" * 300, "ä" * 299),
        ("a{1000}", "a" * 1000, "a" * 999),
    ],
)
def test_texts_of_any_characters(pattern: str, matching: str, others: str) -> None:
    compiled = compile_pattern(pattern, subject=ANY_TEXT)
    assert [text for text in matching.split() if not compiled.matches(text)] == []
    assert [text for text in others.split() if compiled.matches(text)] == []


def test_many_characters_beyond_ascii_are_forgotten_and_learned_again() -> None:
    pattern = compile_pattern("(?:[\u0100-\u01ff]|[\u2000-\uabff]x)*", subject=ANY_TEXT)
    for first in range(0x2000, 0xA000, 100):
        text = "".join(f"{chr(code)}x" for code in range(first, first + 100))
        assert pattern.matches(text + "\u0150")
        assert not pattern.matches(text + "\u0250")
        assert not pattern.matches(text + "\u2000")


def test_a_name_of_a_topic_has_no_characters_beyond_ascii() -> None:
    assert not compile_pattern(".").matches("ä")
    assert compile_pattern(".", subject=ANY_TEXT).matches("ä")


@pytest.mark.parametrize(
    ("pattern", "description"),
    [
        ("(", "missing closing )"),
        ("(?:a", "missing closing )"),
        ("[a", "missing closing ]"),
        ("[z-a]", "invalid character class range"),
        (r"\p{Klingon}", "invalid character class range"),
        ("[[:foo:]]", "invalid character class range"),
        ("*", "missing argument to repetition operator"),
        ("a|*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a++", "invalid nested repetition operator"),
        ("a{2}{3}", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
        ("a{123456789}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        (r"(a)\1", "invalid escape sequence"),
        (r"(?P<a>a)\k<a>", "invalid escape sequence"),
        (r"\Z", "invalid escape sequence"),
        (r"\e", "invalid escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?!a)", "invalid or unsupported Perl syntax"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(?#a)", "invalid or unsupported Perl syntax"),
        ("(?P<a", "invalid named capture"),
        ("(?P<>a)", "invalid named capture"),
        ("(?P<a-b>a)", "invalid named capture"),
        ("(?P<a>a)(?P<a>b)", "duplicate capture group name"),
        ("a)", "regexp/syntax: internal error"),
        (r"\C", "invalid escape sequence"),
        (r"\x{110000}", "invalid escape sequence"),
    ],
)
def test_what_is_invalid_has_the_text_of_kafka(pattern: str, description: str) -> None:
    with pytest.raises(KafkaError) as raised:
        compile_pattern(pattern)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert raised.value.message == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {description}."
    )


def slices_of(pattern: Pattern, name: str) -> int:
    """How often others run."""
    return len(list(pattern.matching(name, WorkBudget())))


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("(a*)*b", "aaab", LONG),
        ("(a|a)*", LONG, LONG[1:] + "b"),
        ("(a|aa)+b", "aab", LONG),
        ("(x+x+)+y", "xxy", "x" * MAX_NAME_LENGTH),
        ("(a?){249}a{249}", LONG, LONG[1:]),
        (".*a.{200}", LONG, "b" * MAX_NAME_LENGTH),
        (".{1000}|a", "a", LONG),
        ("(.{0,1000}){1,}a", LONG, "b" * MAX_NAME_LENGTH),
        (r"[\pL\pN]{249}", LONG, LONG[1:]),
        ("(a?){1000}(b?){1000}(c?){1000}", "abc", "cba"),
        (r"(\b|a){1000}", LONG, "ab"),
        (r"(?i)[\pL]?" * 400, LONG, "1"),
        ("a?" * 1000, LONG, "b"),
        ("a*|" * 2000, LONG, "b"),
        ("(a|b?|c){1000}", LONG, "d"),
        ("(" * 4000 + "a" + ")" * 4000, "a", "b"),
        ("|".join(f"orders-{number}" for number in range(600)), "orders-599", "orders-600"),
        ("a{1000}" * 1000 + "|b", "b", LONG),
        ("(a{1000}){1000}|b", "b", LONG),
    ],
    ids=range(19),
)
def test_patterns_that_take_other_engines_for_ever(pattern: str, matching: str, other: str) -> None:
    """In slices of 2 ms; the most that a name may cost is a second, and once."""
    compiled = compile_pattern(pattern)
    assert compiled.matches(matching)
    assert slices_of(compiled, other) < 500
    assert not compiled.matches(other)


@pytest.mark.parametrize(
    "pattern",
    ["|".join(["(ab?){124}"] * 100), "([ab]c*){0,200}" * 50, "((a?b?){30}c?){8}" * 100, "(" * 300 + "a" + "b?)*" * 300],
    ids=["repeated", "classes", "optional", "deep"],
)
def test_a_program_that_is_too_large_is_refused(pattern: str) -> None:
    large = f"it needs more than {PROGRAM_SIZE_MAX} instructions|it nests deeper"
    with pytest.raises(KafkaError, match=large) as raised:
        compile_pattern(pattern)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_is_too_long_is_refused_unread_and_not_repeated() -> None:
    assert compile_pattern("|".join("a" * (PATTERN_LENGTH_MAX // 2))).matches("a")
    with pytest.raises(KafkaError, match=f"it has more than {PATTERN_LENGTH_MAX} characters") as raised:
        compile_pattern("(" * 30_000)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(raised.value.message) < 300


def test_resolved_by_pattern() -> None:
    names = {"orders-eu", "orders-us", "payments", "__consumer_offsets"}
    patterns = [compile_pattern(text) for text in ("orders-.*", "pay.*|orders-us", "none", "[^_].*")]
    assert run_to_end(resolve(patterns, names)) == {
        "orders-.*": {"orders-eu", "orders-us"},
        "pay.*|orders-us": {"payments", "orders-us"},
        "none": set(),
        "[^_].*": names - {"__consumer_offsets"},
    }


def test_others_run_while_many_names_are_resolved() -> None:
    names = [f"topic-{number}" for number in range(3000)]
    assert len(list(resolve([compile_pattern("topic-.*")], names))) > 3
    assert len(list(resolve([compile_pattern("a.*"), compile_pattern("b.*")], names))) > 6


def test_a_name_that_is_not_ascii_matches_nothing() -> None:
    assert not compile_pattern(".*").matches("é")


def test_what_has_been_computed_is_forgotten_when_it_is_much() -> None:
    """Every name leads to states of its own; the same names match after as before."""
    random = Random(1)
    compiled = compile_pattern(".*a.{20}")
    names = ["".join(random.choices("ab", k=60)) for _ in range(40)]
    expected = [name[-21] == "a" for name in names]
    assert [compiled.matches(name) for name in names] == expected
    assert [compiled.matches(name) for name in names] == expected


ATOMS = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", "ab", r"\.", r"\d", r"\w", "1", r"\b", r"\B", "^", r"(?:a|\b)"]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{0}", "{2,}", "{0,3}"])).map(
            lambda parts: f"(?:{parts[0]}){parts[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.lists(st.text("ab-.1_", min_size=1, max_size=6), max_size=8))
def test_as_python_matches_where_the_languages_agree(pattern: str, names: list[str]) -> None:
    compiled = compile_pattern(pattern)
    for name in names:
        assert compiled.matches(name) is (re.fullmatch(pattern, name, re.ASCII) is not None)


@pytest.mark.parametrize("text", ["(a", "a" * (PATTERN_LENGTH_MAX + 1)])
def test_what_is_wrong_with_a_pattern_is_in_the_error_too(text: str) -> None:
    problem = pattern_problem(text)
    assert problem
    with pytest.raises(KafkaError) as caught:
        compile_pattern(text)
    assert (caught.value.message or "").endswith(f"is not a valid regular expression: {problem}.")
    assert pattern_problem("a+") is None
