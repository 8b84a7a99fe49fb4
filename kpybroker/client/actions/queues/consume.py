"""`topic consume --share-group`: records of a queue to standard output, each accepted, released or rejected.

With `accept`, records are acknowledged once they were printed and flushed. With `reject` likewise. With `release` they
stay acquired until the end, so that each is printed once, and then wait for another member. With `ask` the user says it
of one record after the other; its lock is renewed until then.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.interrupts import Interrupts
from kpybroker.client.connect.errors import CommandError, Failures, note
from kpybroker.client.connect.settings import Settings
from kpybroker.client.records.record import Record
from kpybroker.client.share.member import ShareMember
from kpybroker.client.share.values import Ack, Delivered, Refused

ASK: Final = "ask"
ACKS: Final = {"accept": Ack.ACCEPT, "release": Ack.RELEASE, "reject": Ack.REJECT}
LETTERS: Final = {"": Ack.ACCEPT, "a": Ack.ACCEPT, "r": Ack.RELEASE, "x": Ack.REJECT}
KEEP_S: Final = 3.0
"""How often locks are renewed, and a heartbeat is looked at, while the user decides."""
READ_BYTES: Final = 65536
DONE: Final = {Ack.ACCEPT: "accepted", Ack.RELEASE: "released", Ack.REJECT: "rejected"}
FIX: Final = "these records are delivered again: to this member or another"


class QueueOptions(NamedTuple):
    """What to do with records, and when to end."""

    group: str
    topics: Sequence[str]
    ack: str = "accept"
    exit_at_end: bool = False


class ShareReader:
    """The records of a queue, for `consume`'s loop."""

    def __init__(self, settings: Settings, options: QueueOptions, interrupts: Interrupts) -> None:
        self.is_done = False
        self._options = options
        self._member = ShareMember(settings, options.group, options.topics)
        self._waiting: deque[Delivered] = deque()
        self._kept: list[Delivered] = []
        self._choices = Choices(interrupts) if options.ack == ASK else None
        self._failures = Failures()

    def read(self, count: int) -> list[Delivered]:
        """The next records, `count` at most. Raises CommandError."""
        wanted = 1 if self._choices is not None else count
        if not self._waiting:
            self._waiting.extend(self._member.poll(wanted))
            self.is_done = self._options.exit_at_end and self._member.is_idle
        return [self._waiting.popleft() for _ in range(min(wanted, len(self._waiting)))]

    def record(self, one: Delivered) -> Record:
        """What is printed of it."""
        return one.record

    def printed(self, records: Sequence[Delivered]) -> None:
        """These were written and flushed."""
        if self._choices is not None:
            (one,) = records
            self._ask(one, self._choices)
        elif self._options.ack == "release":
            self._kept += records
        else:
            self._send(records, ACKS[self._options.ack])

    def _ask(self, one: Delivered, choices: Choices) -> None:
        where = f"{one.record.topic}-{one.record.partition} at offset {one.offset}"
        text = f"{where}, delivery {one.record.delivery_count}: accept, release or reject? [a/r/x, default a] "

        def keep() -> None:
            self._member.renew([one])

        choice = choices.next(text, keep)
        if choice is None:  # the input's end, or Ctrl-C
            self.is_done = True
            self._kept.append(one)
        else:
            self._send([one], choice)

    def _send(self, records: Sequence[Delivered], kind: Ack) -> None:
        for refused in self._member.acknowledge(records, kind):
            self._refused(refused, DONE[kind])

    def _refused(self, refused: Refused, done: str) -> None:
        count = len(refused.offsets)
        where = (
            f"{refused.topic}-{refused.partition}, {count} record{'s' if count != 1 else ''} from {refused.offsets[0]}"
        )
        self._failures.add(where, CommandError(f"not {done}: {refused.error.cause}", FIX))

    def close(self) -> None:
        """Release what is kept, and leave."""
        self._member.close()

    def exit_code(self) -> int:
        """1 if an acknowledgement had no effect."""
        return self._failures.exit_code()


class Choices:
    """Lines of standard input: `a`, `r`, `x`, or the words."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._source: Any = sys.stdin.buffer
        self._buffer = b""
        self._has_ended = False

    def next(self, text: str, keep: Any) -> Ack | None:
        """What the user says, asked until it is a choice; None at the input's end and for Ctrl-C.

        `keep` is called every KEEP_S until then.
        """
        while True:
            sys.stderr.write(text)
            sys.stderr.flush()
            line = self._line(keep)
            if line is None:
                note("")
                return None
            word = line.strip().lower()
            found = LETTERS.get(word, ACKS.get(word))
            if found is not None:
                return found
            note(f"{word!r} is none of a, r, x, accept, release and reject")

    def _line(self, keep: Any) -> str | None:
        while b"\n" not in self._buffer and not self._has_ended:
            try:
                while not self._interrupts.wait_readable(self._source, KEEP_S):
                    keep()
            except KeyboardInterrupt:
                return None
            data = self._source.read1(READ_BYTES)
            self._has_ended = not data
            self._buffer += data
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")
