"""An automaton without backtracking: all ways through a pattern at once, character by character.

A state is the set of instructions that have read the last character, as bits of an integer. What follows a state on a
character is computed once and kept, so that most steps are a look into a dictionary. What a pattern can make expensive
is bounded: PROGRAM_SIZE_MAX instructions, STATES_MAX states that are kept, and texts are not long; and the work is
counted, so that others run in between.

ASCII characters are symbols of their own. All others that the same instructions read are one symbol.

An instruction either reads a character and goes on to another, or forks to several without reading, perhaps only where
a `Gap` is true. Programs are written from their end, so the instruction before number N in a plain text is N + 1: what
follows all such instructions of a state is one shift.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Final

from kpybroker.core.patterns.classes import NO_CHARS, WORD, CharSet
from kpybroker.core.patterns.nodes import ENDLESS, Alternate, Assertion, Chars, Concat, Gap, Node, Repeat
from kpybroker.wire.yield_budget import WorkBudget

PROGRAM_SIZE_MAX: Final = 8192
DEPTH_MAX: Final = 200
STATES_MAX: Final = 500

_MATCH: Final = 0
"""The number of the instruction that reads the end of the text."""
_END: Final = 128
"""The symbol that it reads. Those below are ASCII, those above are other characters."""
_OTHER: Final = 129
_GAP_BITS: Final = 6
OTHERS_MAX: Final = 1_000
"""Characters beyond ASCII that are known when the next text is begun."""


class ProgramTooLarge(Exception):
    """A valid pattern, but of more than this module takes on; the text says of what."""


class _State:
    """Instructions that have read the last character, and the states that follow, by symbol and gap."""

    __slots__ = ("bits", "following")

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.following: dict[int, _State] = {}


class Program:
    """Matches whole texts. For one task at a time: it keeps what it has computed."""

    def __init__(self, tree: Node) -> None:
        if tree.size > PROGRAM_SIZE_MAX:
            raise ProgramTooLarge(f"it needs more than {PROGRAM_SIZE_MAX} instructions")
        if tree.depth > DEPTH_MAX:
            raise ProgramTooLarge(f"it nests deeper than {DEPTH_MAX}")
        written = _Writer()
        self._entry = written.write(tree, written.entry_of_match)
        self._written = written
        self._reads_next = written.reads_next()
        self._start = _State(1 << len(written.read))
        self._states: dict[int, _State] = {self._start.bits: self._start}
        self._masks: dict[int, int] = {_END: 1 << _MATCH}
        self._reached: dict[tuple[int, int], int] = {}
        self._reads_others = any(chars.others for chars in written.read)
        self._others: dict[str, int] = {}
        self._symbols_by_mask: dict[int, int] = {}

    def matches(self, text: str, budget: WorkBudget) -> Generator[None, None, bool]:
        """Whether all of `text` matches. Yields once the budget is spent."""
        if text.isascii():
            symbols = [*text.encode(), _END]
        elif self._reads_others:
            symbols = yield from self._symbols(text, budget)
        else:
            return False
        state = self._start
        before = -1
        for symbol in symbols:
            gap = _gap(min(before, _OTHER), min(symbol, _OTHER)) if self._written.has_assertions else 0
            key = symbol << _GAP_BITS | gap
            following = state.following.get(key)
            if following is None:
                following = yield from self._computed(state, symbol, gap, budget)
                state.following[key] = following
            if not following.bits:
                return False
            state = following
            before = symbol
        return True

    def _computed(self, state: _State, symbol: int, gap: int, budget: WorkBudget) -> Generator[None, None, _State]:
        reached = (state.bits & self._reads_next) >> 1
        others = state.bits & ~self._reads_next
        while others:
            lowest = others & -others
            others ^= lowest
            number = lowest.bit_length() - 1
            found = self._reached.get((number, gap))
            if found is None:
                entry = self._written.goes_to[number] if number < len(self._written.read) else self._entry
                found, cost = self._written.reach(entry, gap)
                self._reached[number, gap] = found
                if budget.is_spent(cost):
                    yield
            reached |= found
            if budget.is_spent(1):
                yield
        bits = reached & self._mask(symbol)
        known = self._states.get(bits)
        if known is None:
            if len(self._states) >= STATES_MAX:
                self._forget()
            known = self._states[bits] = _State(bits)
        return known

    def _mask(self, symbol: int) -> int:
        """The instructions that read this character."""
        mask = self._masks.get(symbol)
        if mask is None:
            char = 1 << symbol
            digits = ("1" if chars.bits & char else "0" for chars in reversed(self._written.read))
            mask = self._masks[symbol] = int("".join(digits), 2)
        return mask

    def _symbols(self, text: str, budget: WorkBudget) -> Generator[None, None, list[int]]:
        """Of a text with characters beyond ASCII."""
        if len(self._others) > OTHERS_MAX:
            self._others, self._symbols_by_mask = {}, {}
            self._masks = {_END: 1 << _MATCH}
            self._forget()  # symbols get other numbers
        symbols = []
        for char in text:
            code = ord(char)
            if code >= _END and char not in self._others:
                self._others[char] = yield from self._new_symbol(code, budget)
            symbols.append(code if code < _END else self._others[char])
        symbols.append(_END)
        return symbols

    def _new_symbol(self, code: int, budget: WorkBudget) -> Generator[None, None, int]:
        known: dict[int, str] = {}  # instructions that were repeated read the same set
        digits = []
        for chars in reversed(self._written.read):
            digit = known.get(id(chars))
            if digit is None:
                digit = known[id(chars)] = "1" if chars.has(code) else "0"
                if budget.is_spent(1 + len(chars.others)):
                    yield
            digits.append(digit)
        mask = int("".join(digits), 2)
        symbol = self._symbols_by_mask.setdefault(mask, _OTHER + len(self._symbols_by_mask))
        self._masks[symbol] = mask
        return symbol

    def _forget(self) -> None:
        """States refer to each other in circles: taken apart, they are freed at once."""
        for state in self._states.values():
            state.following = {}
        self._states = {self._start.bits: self._start}


class _Writer:
    """The instructions. Those that read have numbers; all have an entry, which forks refer to."""

    def __init__(self) -> None:
        self.read: list[CharSet] = [NO_CHARS]
        self.goes_to: list[int] = [-1]
        self.has_assertions = False
        self._forks: list[tuple[int, list[int]]] = []
        self.entry_of_match = self._entry_of_number(_MATCH)

    def write(self, node: Node, then: int) -> int:
        """The entry of what matches `node` and goes on at `then`."""
        match node:
            case Chars():
                self.read.append(node.chars)
                self.goes_to.append(then)
                return self._entry_of_number(len(self.read) - 1)
            case Assertion():
                self.has_assertions |= node.gap is not Gap.ANY
                return self._fork([then], node.gap)
            case Concat():
                for part in reversed(node.parts):
                    then = self.write(part, then)
                return then
            case Alternate():
                return self._fork([self.write(part, then) for part in node.parts])
            case Repeat():
                return self._write_repeat(node, then)
        raise AssertionError(node)

    def reach(self, entry: int, gap: int) -> tuple[int, int]:
        """The reading instructions that are reached from an entry, where `gap` is true; and what the search cost."""
        reached = 0
        seen = {entry}
        ahead = [entry]
        while ahead:
            entry = ahead.pop()
            if entry < 0:
                reached |= 1 << ~entry
                continue
            needed, targets = self._forks[entry]
            if needed & ~gap:
                continue
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    ahead.append(target)
        return reached, 1 + len(seen) // 4

    def reads_next(self) -> int:
        """The instructions that go on to the one before them, without a fork."""
        entries = map(self._entry_of_number, range(-1, len(self.read) - 1))
        digits = ("1" if goes_to == entry else "0" for goes_to, entry in zip(self.goes_to, entries, strict=True))
        return int("".join(digits)[:0:-1] + "0", 2)

    def _write_repeat(self, node: Repeat, then: int) -> int:
        after = then
        if node.most == ENDLESS:
            again = self._fork([])
            body = self.write(node.part, again)
            self._forks[again][1].extend((body, after))
            then = body if node.least else again
        else:
            for _ in range(node.most - node.least):
                then = self._fork([self.write(node.part, then), after])
        copies_left = node.least - 1 if node.most == ENDLESS and node.least else node.least
        for _ in range(copies_left):
            then = self.write(node.part, then)
        return then

    def _fork(self, targets: list[int], gap: Gap = Gap.ANY) -> int:
        self._forks.append((gap.value, targets))
        return len(self._forks) - 1

    def _entry_of_number(self, number: int) -> int:
        return ~number


@cache
def _gap(before: int, after: int) -> int:
    """What is true between two symbols; `before` is -1 at the begin. There are 131 times 130 of them at most."""
    new_line = ord("\n")
    is_word_edge = _is_word(before) != _is_word(after)
    gap = Gap.WORD_BOUNDARY if is_word_edge else Gap.NO_WORD_BOUNDARY
    if before < 0:
        gap |= Gap.BEGIN_TEXT | Gap.BEGIN_LINE
    if after == _END:
        gap |= Gap.END_TEXT | Gap.END_LINE
    if before == new_line:
        gap |= Gap.BEGIN_LINE
    if after == new_line:
        gap |= Gap.END_LINE
    return gap.value


def _is_word(symbol: int) -> bool:
    return 0 <= symbol < _END and bool(WORD.bits >> symbol & 1)
