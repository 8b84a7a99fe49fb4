"""Random scripts about a share partition (`tests.core.share.player`), each from a seed.

They are made while kpybroker's machine plays them, so that members acknowledge what they hold, and the log is read from
where the machine asks for it.
"""

from __future__ import annotations

from random import Random

from kpybroker.core.share.values import RecordState
from tests.core.share.player import Player

MEMBERS = ("a", "b", "c")
LOCK_MS = 15_000
RESULTS = [0] * 8 + [15, 124, -1]
"""A write of the state mostly succeeds; COORDINATOR_NOT_AVAILABLE, FENCED_STATE_EPOCH, UNKNOWN_SERVER_ERROR."""


class Script:
    """A script that grows, and the log that it is about: record batches with holes, some of aborted transactions."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.player = Player()
        self.steps: list[str] = []
        self.seen: list[str] = []
        self.log: list[tuple[int, int, bool]] = []
        self.log_start = 0
        self.offset = self.random.choice([0, 0, 7])
        self.weights = [self.random.choice([1, 2, 4, 8]) for _ in WISHES[:-1]] + [self.random.choice([0, 0, 1, 2])]
        self._open()

    def _open(self) -> None:
        random = self.random
        batches, offset = [], self.offset
        for _ in range(random.choice([0, 0, 0, 1, 3, 6])):
            first = offset + random.choice([0, 0, 0, 0, 0, 1, 4])
            offset = first + random.choice([1, 1, 3, 10])
            batches.append(f"{first}-{offset - 1}:{random.choice([0, 0, 2, 4])}:{random.randint(1, 4)}")
        limit, locks = random.choice([2, 3, 5, 5, 10]), random.choice([10, 30, 200, 200])
        self.play(f"open {limit} {LOCK_MS} {locks} 3 {self.offset} {','.join(batches) or '-'}")

    def play(self, step: str) -> None:
        self.steps.append(step)
        self.seen.append(self.player.play(step))

    def grow(self) -> None:
        """A step more."""
        (wish,) = self.random.choices(WISHES, self.weights)
        wish(self)

    def acquire(self) -> None:
        random, partition = self.random, self.player.partition
        offset = partition.next_fetch_offset()
        if not partition.can_acquire():
            return
        if offset < self.log_start:
            self.play(f"advance {self.log_start}")
            return
        while not self.log or self.log[-1][1] < offset + 30:
            base = self.offset if not self.log else self.log[-1][1] + 1 + random.choice([0, 0, 0, 0, 2])
            self.log.append((base, base + random.choice([0, 0, 2, 4, 9, 15]), random.random() < 0.1))
        read = [batch for batch in self.log if batch[1] >= offset][: random.choice([1, 1, 2, 3, 5])]
        log = ",".join(f"{base}-{last}{'*' * aborted}" for base, last, aborted in read)
        most, size = random.choice([1, 1, 3, 10, 500]), random.choice([1, 3, 10, 500])
        mode = random.choice(["soft", "soft", "strict"])
        self.play(f"acquire {random.choice(MEMBERS)} {offset} {most} {size} {mode} {log}")

    def acknowledge(self) -> None:
        """Mostly what a member holds, as it is, cut, or with its neighbours; a type for all or for each.

        It begins with an offset in flight: between batches the verdict of Kafka depends on what the batch before was.
        """
        random = self.random
        held = [run for run in self.player.partition.runs() if run.state is RecordState.ACQUIRED]
        if not held:
            return
        member = random.choice(held).member_id
        mine = [run for run in held if run.member_id == member]
        asked, after = [], -1
        for run in random.sample(mine, min(len(mine), random.choice([1, 1, 2, 4]))):
            first, last = run.first, run.last
            if random.random() < 0.5:
                first, last = sorted((random.randint(first, last), random.randint(first, last)))
            if random.random() < 0.1:
                last += random.randint(1, 10)
            if random.random() < 0.03:
                first = max(0, first - random.randint(1, 10))
            asked.append((first, last))
        rows = []
        for first, last in sorted(asked):
            if first > after and any(run.first <= first <= run.last for run in self.player.partition.runs()):
                count = random.choice([1, last - first + 1])
                types = [str(random.choice([0, 1, 1, 1, 2, 2, 2, 3, 4])) for _ in range(count)]
                rows.append(f"{first}-{last}:{'.'.join(types)}")
                after = last
        if not rows:
            return
        who = member if random.random() < 0.95 else random.choice(MEMBERS)
        self.play(f"ack {who} {','.join(rows)}")

    def release(self) -> None:
        self.play(f"release {self.random.choice(MEMBERS)}")

    def pass_time(self) -> None:
        self.play(f"after {self.random.choice([1_000, 5_000, LOCK_MS, LOCK_MS])}")

    def end_write(self) -> None:
        if self.player.writes:
            number = 0 if self.random.random() < 0.7 else self.random.randrange(len(self.player.writes))
            self.play(f"written {number} {self.random.choice(RESULTS)}")

    def truncate(self) -> None:
        """DeleteRecords, or, mostly, retention, which begins a batch; not inside of one whose release is being written.

        Kafka forgets that it is being written then.
        """
        partition = self.player.partition
        start = max(self.log_start, partition.start_offset + self.random.choice([1, 2, 5, 12, 40]))
        if self.random.random() < 0.8:
            start = next((base for base, _, _ in self.log if base >= start), start)
        if any(run.first < start <= run.last and run.pending is not None for run in partition.runs()):
            return
        self.log_start = start
        self.log = [batch for batch in self.log if batch[1] >= self.log_start]
        self.offset = max(self.offset, self.log_start)
        self.play(f"advance {self.log_start}")


WISHES = [
    Script.acquire,
    Script.acquire,
    Script.acknowledge,
    Script.acknowledge,
    Script.end_write,
    Script.end_write,
    Script.pass_time,
    Script.release,
    Script.truncate,
]


def random_script(seed: int, steps: int = 40) -> Script:
    """The script of this seed."""
    script = Script(seed)
    for _ in range(steps):
        script.grow()
    return script
