"""`make bench-ten-thousand`: what a broker does with ten thousand of everything, next to Kafka, and how that grows.

    python -m compat_tests.bench.ten_thousand.run [--quick] [--only WORDS,WORDS] [--ours] [--sizes 100,1000]

Scenes: partitions of one broker, topics made and deleted, groups of both protocols, transactional ids, ACLs,
connections with and without TLS, and partitions of three brokers whose controller is killed. Each is measured at three
sizes, on a fresh broker each time, Kafka first and then ours, with a core for the broker and another for the client.
Limits are those of the design, for the largest size. Exits with 1 when one is missed.

Each scene is kept when it is finished (`kept`), if the machine was quiet. So `--only partitions,ACLs` measures some of
them today and others tomorrow: the page has all that were. A word that is no scene's name is part of some.

Memory of one is what the broker holds more of when it has come to rest again, divided by how many there are; Java's is
that of a heap which the collector has not emptied.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compat_tests.bench.load import page_cache
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import KAFKA_4, KIND_NAMES, Cores, scratch_directory
from compat_tests.bench.measuring.report import MISSED, Part, Table, markdown, number
from compat_tests.bench.ten_thousand import connections, coordinators, failover, partitions
from compat_tests.bench.ten_thousand.kept import Found, Kept, keep, kept
from compat_tests.bench.ten_thousand.scene import KAFKA, OURS, Place, Scene

NAMES = {**KIND_NAMES, KAFKA_4: KAFKA_4}
EXPLANATION = "One broker at a time, each scene on a new one; one round. Limits are for the largest size."


def every_scene(quick: bool) -> list[Scene]:
    return [scene for module in (partitions, coordinators, connections, failover) for scene in module.scenes(quick)]


def main() -> int:
    parser = command.parser(__doc__, 1)
    parser.add_argument("--ours", action="store_true", help="without Kafka; writes no page")
    parser.add_argument("--sizes", metavar="LIST", help="other numbers, such as 100,1000; writes no page")
    options = parser.parse_args()
    chosen = chosen_scenes(every_scene(options.quick), options.only.split(","))
    sizes = [int(size) for size in options.sizes.split(",")] if options.sizes else None
    clock, apart, _ = command.prepare()
    is_kept = not (options.quick or options.no_write or options.ours or sizes)
    missed = []
    with scratch_directory(options.dir) as scratch:
        page_cache.require_room(scratch, max((scene.room_gb for scene in chosen), default=0))
        frame = Frame(scratch, apart, options.quick, clock)
        for scene in chosen:
            kinds = [kind for kind in scene.kinds if kind == OURS or not options.ours]
            own_clock = command.Clock()
            found = measure(scene, sizes or scene.sizes, kinds, frame)
            conditions = own_clock.conditions(1)
            print(markdown(section(scene, Kept(conditions.sentence(), found))), flush=True)
            missed += misses(scene, found)
            if is_kept and conditions.quiet:
                keep(scene.name, Kept(conditions.sentence(), found))
    options.no_write, options.only = not is_kept, ""
    return command.finish(options, "bench-ten-thousand", clock.conditions(1), page(), missed)


def chosen_scenes(scenes: Sequence[Scene], words: Sequence[str]) -> list[Scene]:
    names = {scene.name for scene in scenes}
    return [scene for scene in scenes if any(word in ({scene.name} if word in names else scene.name) for word in words)]


class Frame(NamedTuple):
    """Where all scenes are measured, and how much of each."""

    scratch: Path
    cores: Cores
    quick: bool
    clock: command.Clock


def measure(scene: Scene, sizes: Sequence[int], kinds: Sequence[str], frame: Frame) -> Found:
    found: Found = {}
    for size in sizes:
        for kind in kinds:
            directory = frame.scratch / f"{scene.name}-{size}-{kind}".replace(" ", "-")
            found[kind, size] = scene.measure(Place(kind, size, directory, frame.cores, frame.quick))
            shutil.rmtree(directory, ignore_errors=True)
            said = ", ".join(f"{name} {number(value)}" for name, value in found[kind, size].items())
            frame.clock.say(f"{size} {scene.name}, {NAMES[kind]}: {said}")
    os.sync()  # what a scene has written is no burden of the next one
    return found


def misses(scene: Scene, found: Found) -> list[str]:
    largest = max(size for _, size in found)
    ours = found[OURS, largest]
    return [
        f"{largest:,} {scene.name}: {bound.name}"
        for bound in scene.bounds
        if bound.name in ours and bound.is_missed(ours[bound.name])
    ]


def page() -> list[Part]:
    """All scenes that were measured, now or before."""
    parts: list[Part] = [EXPLANATION]
    for scene in every_scene(quick=False):
        if (measured := kept(scene.name)) is not None:
            parts += section(scene, measured)
    return parts


def section(scene: Scene, measured: Kept) -> list[Part]:
    return [f"### {scene.name[0].upper()}{scene.name[1:]}", measured.conditions, table(scene, measured.found)]


def table(scene: Scene, found: Found) -> Table:
    sizes = sorted({size for _, size in found})
    kinds = [kind for kind in (KAFKA, KAFKA_4, OURS) if any(known == kind for known, _ in found)]
    head = ["", "unit", *(f"{NAMES[kind]}, {size:,}" for kind in kinds for size in sizes), "limit"]
    rows = []
    for bound in scene.bounds:
        row = [bound.name, bound.unit]
        for kind in kinds:
            for size in sizes:
                value = found[kind, size].get(bound.name)
                is_missed = value is not None and kind == OURS and size == sizes[-1] and bound.is_missed(value)
                row.append("" if value is None else number(value) + MISSED * is_missed)
        limit = bound.most if bound.most is not None else bound.least
        rows.append([*row, "" if limit is None else f"{'≤' if bound.most is not None else '≥'} {limit:g}"])
    return Table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
