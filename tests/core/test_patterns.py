"""Patterns of topics: RE2's language on whole names, Kafka's texts for errors, and bounds for what is large."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.patterns import PATTERN_LENGTH_MAX, compile_pattern, resolve
from kpybroker.core.topic_names import MAX_NAME_LENGTH
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.yield_budget import SLICE_UNITS

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
        ("(a{100}){11}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        (r"(a)\1", "invalid escape sequence"),
        (r"(?P<a>a)\k<a>", "invalid escape sequence"),
        (r"\Z", "invalid escape sequence"),
        (r"\e", "invalid escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?!a)", "invalid or unsupported Perl syntax"),
        ("(?<=a)", "invalid or unsupported Perl syntax"),
        ("(?<!a)", "invalid or unsupported Perl syntax"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(?#a)", "invalid or unsupported Perl syntax"),
        ("(?P<a", "invalid named capture"),
        ("(?P<>a)", "invalid named capture"),
    ],
)
def test_what_is_invalid_has_the_text_of_kafka(pattern: str, description: str) -> None:
    with pytest.raises(KafkaError) as raised:
        compile_pattern(pattern)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert raised.value.message == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {description}."
    )


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
        ("(" * 900 + "a" + ")" * 900, "a", "b"),
        ("|".join(f"orders-{number}" for number in range(300)), "orders-299", "orders-300"),
    ],
    ids=range(12),
)
def test_patterns_that_take_other_engines_for_ever(pattern: str, matching: str, other: str) -> None:
    compiled = compile_pattern(pattern)
    assert compiled.matches(matching)
    assert not compiled.matches(other)
    assert compiled.cost(LONG) < 20 * SLICE_UNITS


@pytest.mark.parametrize(
    "pattern",
    ["a{1000}" * 500, "(a?){1000}" * 100, r"\pL{1000}" * 100, "(.{500}b?){2}" * 30, "é" * PATTERN_LENGTH_MAX],
    ids=["literals", "optional", "classes", "nested", "not ASCII"],
)
def test_a_program_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError, match="pattern too large") as raised:
        compile_pattern(pattern)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_is_too_long_is_refused_unread_and_not_repeated() -> None:
    assert compile_pattern("a" * PATTERN_LENGTH_MAX).matches("a" * PATTERN_LENGTH_MAX)
    with pytest.raises(KafkaError, match="it has more than 4096 characters") as raised:
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


def test_others_run_while_many_names_are_resolved_and_more_often_the_larger_the_pattern() -> None:
    names = [f"topic-{number}" for number in range(3000)]
    small = len(list(resolve([compile_pattern("topic-.*")], names)))
    large = len(list(resolve([compile_pattern("(a?){1000}|topic-.*")], names)))
    assert 3 < small < large


ATOMS = st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]", "ab", r"\.", r"\d", r"\w", "1"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{0}"])).map(
            lambda parts: f"(?:{parts[0]}){parts[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.lists(st.text("ab-.1_", max_size=6), max_size=8))
def test_as_python_matches_where_the_languages_agree(pattern: str, names: list[str]) -> None:
    compiled = compile_pattern(pattern)
    for name in names:
        assert compiled.matches(name) is (re.fullmatch(pattern, name, re.ASCII) is not None)


def test_re2_is_loaded_by_the_first_pattern() -> None:
    program = (
        "import sys; from kpybroker.core.patterns import compile_pattern; before = 're2' in sys.modules;"
        "compile_pattern('a'); print(before, 're2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["False", "True"]
