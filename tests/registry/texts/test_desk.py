"""Which question goes to which worker, and when. The workers are here, and end when a test says so."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing

import pytest

from kpybroker.registry.errors import STORE_ERROR, RegistryError
from kpybroker.registry.texts import desk as desks
from kpybroker.registry.texts.channels import Channel
from kpybroker.registry.texts.desk import CPU_S_MAX, QUICK_CPU_S, TOO_MANY, Desk
from kpybroker.registry.texts.frames import Frame
from kpybroker.registry.texts.questions import READ, Question, Reply, Source, read_question

WAIT_S = 120.0


class Asked:
    """A question that a worker has; `reply` ends it, with None as the end of the worker."""

    def __init__(self, number: int, text: str, cpu_s: float) -> None:
        self.number = number
        self.text = text
        self.cpu_s = cpu_s
        self._reply: queue.Queue[Frame | None] = queue.Queue()

    def reply(self, value: str | None, *, is_last: bool = False) -> None:
        self._reply.put(None if value is None else Frame(Reply(value).message(), float(is_last)))

    def wait(self) -> Frame | None:
        return self._reply.get(timeout=WAIT_S)


class Worker(Channel):
    def __init__(self, number: int, asked: queue.Queue[Asked], ended: Callable[[], None]) -> None:
        self._number = number
        self._asked = asked
        self.end = ended

    def ask(self, content: bytes, cpu_s: float) -> Frame | None:
        one = Asked(self._number, read_question(content).sources[0].text, cpu_s)
        self._asked.put(one)
        return one.wait()


class Fake:
    """Workers that reply what the test says."""

    def __init__(self) -> None:
        self.asked: queue.Queue[Asked] = queue.Queue()
        self.made: list[int] = []
        self.ended = 0
        self.is_broken = False
        self.error: Exception | None = None
        self.now = 0.0
        self.passes = CPU_S_MAX
        """Seconds between two looks at the clock."""

    def clock(self) -> float:
        self.now += self.passes
        return self.now

    def start(self) -> None:
        """Nothing takes time."""

    def make(self, number: int) -> Channel | None:
        self.made.append(number)
        if self.error is not None:
            raise self.error
        return None if self.is_broken else Worker(number, self.asked, self._end)

    def _end(self) -> None:
        self.ended += 1

    def close(self) -> None:
        """Nothing was started."""

    def next(self) -> Asked:
        return self.asked.get(timeout=WAIT_S)


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def desk(fake: Fake) -> Iterator[Desk]:
    with closing(Desk(fake, fake.clock)) as made:
        made.start()
        yield made


def ask(desk: Desk, text: str, client: str = "a") -> Future[Reply]:
    return desk.ask(Question(READ, [Source("AVRO", text, {})]), client)


def refusal(future: Future[Reply]) -> int:
    error = future.exception(WAIT_S)
    assert isinstance(error, RegistryError)
    return error.code


def test_one_worker_replies_as_long_as_it_is_not_busy(desk: Desk, fake: Fake) -> None:
    for text in ("1", "2", "3"):
        future = ask(desk, text)
        one = fake.next()
        assert (one.number, one.text, one.cpu_s) == (0, text, QUICK_CPU_S)
        one.reply(text)
        assert future.result(WAIT_S) == Reply(text)
    assert fake.made == [0]


def test_a_second_worker_replies_while_the_first_is_busy(desk: Desk, fake: Fake) -> None:
    futures = [ask(desk, text) for text in ("1", "2")]
    both = [fake.next(), fake.next()]
    assert {one.number for one in both} == {0, 1}
    for one in both:
        one.reply(one.text)
    assert [future.result(WAIT_S).value for future in futures] == ["1", "2"]


def test_what_needs_more_is_asked_once_more_with_all_the_time_of_the_second_worker(desk: Desk, fake: Fake) -> None:
    future = ask(desk, "slow")
    fake.next().reply(None)
    again = fake.next()
    assert (again.number, again.text, again.cpu_s) == (1, "slow", CPU_S_MAX)
    others = [ask(desk, f"slow {number}") for number in range(3)]
    for _ in others:
        quick = fake.next()
        assert (quick.number, quick.cpu_s) == (0, QUICK_CPU_S)
        quick.reply(None)
    fast = ask(desk, "fast", "b")
    one = fake.next()
    assert (one.number, one.text) == (0, "fast")
    one.reply("done")
    assert fast.result(WAIT_S).value == "done"
    again.reply("at last")
    assert future.result(WAIT_S).value == "at last"
    for _ in others:
        fake.next().reply(None)
    assert [other.result(WAIT_S).code for other in others] == [42201] * 3
    assert all("more than" in other.result(WAIT_S).why for other in others)


def test_a_worker_that_another_process_ended_costs_no_schema(desk: Desk, fake: Fake) -> None:
    fake.passes = 0.0
    future = ask(desk, "slow")
    for number in (0, 1):
        one = fake.next()
        assert one.number == number
        one.reply(None)
    again = fake.next()
    assert (again.number, again.cpu_s) == (1, CPU_S_MAX)
    again.reply("read")
    assert future.result(WAIT_S).value == "read"


def test_a_text_that_ends_its_worker_at_once_is_refused_in_the_end(desk: Desk, fake: Fake) -> None:
    fake.passes = 0.0
    future = ask(desk, "bad")
    for _ in range(3):
        fake.next().reply(None)
    assert future.result(WAIT_S).code == 42201


def test_clients_take_turns(desk: Desk, fake: Fake) -> None:
    held = [ask(desk, text) for text in ("held 1", "held 2")]
    both = [fake.next(), fake.next()]
    many = [ask(desk, f"a{number}") for number in range(5)]
    few = ask(desk, "b0", "b")
    both[0].reply("")
    order = []
    for _ in range(6):
        one = fake.next()
        order.append(one.text)
        one.reply("")
    assert order == ["a0", "b0", "a1", "a2", "a3", "a4"]
    both[1].reply("")
    for future in (*held, *many, few):
        assert future.result(WAIT_S) == Reply("")


def test_short_texts_are_first(desk: Desk, fake: Fake) -> None:
    held = [ask(desk, text) for text in ("held 1", "held 2")]
    both = [fake.next(), fake.next()]
    futures = [ask(desk, "x" * size) for size in (30, 10, 20, 1)]
    both[0].reply("")
    sizes = []
    for _ in futures:
        one = fake.next()
        sizes.append(len(one.text))
        one.reply("")
    assert sizes == [1, 10, 20, 30]
    both[1].reply("")
    assert [future.result(WAIT_S) for future in (*held, *futures)] == [Reply("")] * 6


def test_what_waits_already_is_asked_once(desk: Desk, fake: Fake) -> None:
    futures = [ask(desk, "same", client) for client in "abc"]
    assert not futures[0].cancel(), "the others wait too"
    fake.next().reply("known")
    assert [future.result(WAIT_S).value for future in futures] == ["known"] * 3
    assert fake.asked.empty()


def test_what_waits_is_bounded(desk: Desk, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "WAITING_OF_CLIENT_MAX", 3)
    monkeypatch.setattr(desks, "WAITING_MAX", 5)
    monkeypatch.setattr(desks, "CHARACTERS_MAX", 1000)
    taken = [ask(desk, str(number)) for number in range(3)]
    assert refusal(ask(desk, "one too many")) == TOO_MANY
    assert refusal(ask(desk, "x" * 1000, "b")) == TOO_MANY
    taken += [ask(desk, "b1", "b"), ask(desk, "c1", "c")]
    assert refusal(ask(desk, "d1", "d")) == TOO_MANY
    for _ in taken:
        fake.next().reply("")
    assert [future.result(WAIT_S) for future in taken] == [Reply("")] * 5
    large = ask(desk, "x" * 2000, "b")
    fake.next().reply("what is alone may be large")
    assert large.result(WAIT_S).value


def test_few_wait_for_all_the_time_of_the_second_worker(
    desk: Desk, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "SLOW_WAITING_MAX", 1)
    first = ask(desk, "1")
    fake.next().reply(None)
    running = fake.next()
    second = ask(desk, "2")
    fake.next().reply(None)
    third = ask(desk, "3")
    fake.next().reply(None)
    assert refusal(third) == TOO_MANY
    running.reply("1")
    fake.next().reply("2")
    assert [future.result(WAIT_S).value for future in (first, second)] == ["1", "2"]


def test_a_worker_that_has_grown_is_replaced_after_its_reply(desk: Desk, fake: Fake) -> None:
    first = ask(desk, "1")
    fake.next().reply("1", is_last=True)
    assert first.result(WAIT_S).value == "1"
    second = ask(desk, "2")
    fake.next().reply("2")
    assert second.result(WAIT_S).value == "2"
    assert (fake.made, fake.ended) == ([0, 0], 1)


def test_without_workers_a_request_is_refused_and_not_the_schema(desk: Desk, fake: Fake) -> None:
    fake.is_broken = True
    assert refusal(ask(desk, "1")) == STORE_ERROR
    fake.is_broken = False
    fake.error = OSError("no more descriptors")
    assert refusal(ask(desk, "1")) == STORE_ERROR
    fake.error = None
    future = ask(desk, "1")
    fake.next().reply("1")
    assert future.result(WAIT_S).value == "1"


def test_a_bug_is_logged_and_not_shown(desk: Desk, fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    future = ask(desk, "1")
    one = fake.next()
    one._reply.put(Frame(Reply(None, STORE_ERROR, "Traceback: secret").message(), 0.0))
    assert refusal(future) == STORE_ERROR
    assert "secret" not in str(future.exception())
    assert "secret" in caplog.text


def test_what_is_no_reply_counts_as_the_end_of_the_worker(desk: Desk, fake: Fake) -> None:
    future = ask(desk, "1")
    fake.next()._reply.put(Frame(b"[", 0.0))
    fake.next().reply("1")
    assert future.result(WAIT_S).value == "1"
    assert fake.ended == 1


def test_what_waits_is_refused_at_the_end(fake: Fake) -> None:
    desk = Desk(fake)
    desk.start()
    futures = [ask(desk, str(number)) for number in range(4)]
    both = [fake.next(), fake.next()]
    desk.close()
    assert {refusal(future) for future in futures} == {STORE_ERROR}
    for one in both:
        one.reply("too late")
    assert refusal(ask(desk, "5")) == TOO_MANY
