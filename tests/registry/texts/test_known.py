"""What is known of texts is bounded by its size."""

from __future__ import annotations

from kpybroker.registry.texts.known import KEPT_MIN, Known
from kpybroker.registry.texts.questions import COMPARE, READ, Question, Reply, Source, refused


def question(number: int) -> Question:
    return Question(READ, [Source("AVRO", str(number), {})])


def test_the_least_recently_used_are_forgotten() -> None:
    known = Known(200_000)
    for number in range(200):
        known.keep(question(number), Reply("x" * 2000))
        assert known.find(question(0)) == Reply("x" * 2000)
    kept = [number for number in range(200) if known.find(question(number)) is not None]
    assert kept[0] == 0
    assert 50 < len(kept) < 100
    assert kept[1:] == list(range(201 - len(kept), 200))


def test_some_are_kept_however_large() -> None:
    known = Known(1)
    for number in range(100):
        known.keep(question(number), Reply(["x" * 10_000]))
    assert [number for number in range(100) if known.find(question(number))] == list(range(100 - KEPT_MIN, 100))


def test_refusals_are_kept_and_replaced() -> None:
    known = Known()
    known.keep(question(1), refused("no"))
    assert known.find(question(1)) == refused("no")
    known.keep(question(1), Reply("yes"))
    assert known.find(question(1)) == Reply("yes")


def test_each_part_of_a_question_counts() -> None:
    one, other = Source("AVRO", "a", {"b": "c"}), Source("AVRO", "a", {"b": "d"})
    questions = [
        Question(READ, [one]),
        Question(READ, [other]),
        Question(READ, [Source("JSON", "a", {"b": "c"})]),
        Question(READ, [Source("AVRO", "a", {"b": "c"}, is_new=True)]),
        Question(READ, [Source("AVRO", "ab", {"": "c"})]),
        Question(COMPARE, [one, other], "FULL", 1),
        Question(COMPARE, [other, one], "FULL", 1),
        Question(COMPARE, [one, other], "FULL", 2),
        Question(COMPARE, [one, other], "BACKWARD", 1),
    ]
    assert len({one.key for one in questions}) == len(questions)
