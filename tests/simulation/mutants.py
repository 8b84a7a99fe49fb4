"""The mutants of the storms in the simulator: which seed is the first that finds each.

    python -m tests.simulation.mutants [NAME...] --seeds 200
    python -m tests.simulation.mutants --page                 # the table of what was found, once more into the page

A mutant is a patch of `compat_tests/faults/mutants` or of `tests/simulation/patches`, applied to a copy of the package
that the seeds are run with. The latter are subtler: a storm of real processes would hardly meet them. Each run writes
what it found into `found.txt`, and from there into the page.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compat_tests.deps import ROOT
from compat_tests.faults.mutate import Mutant, build, mutants
from tests.simulation.plays import PLAYS

PATCHES = Path(__file__).with_name("patches")
FOUND = Path(__file__).with_name("found.txt")
PAGE = ROOT / "docs" / "internals" / "simulation.md"
BEGIN = "<!-- written by python -m tests.simulation.mutants --page: begin -->\n"
END = "<!-- written by python -m tests.simulation.mutants --page: end -->"
RUN = (sys.executable, "-m", "tests.simulation.run")
PLAY_ORDERS = 5
NEEDS = {
    "add_forgotten": "transactional",
    "aborts_not_cut": "transactional",
    "aborts_not_indexed": "transactional",
    "consumer_sessions_not_restarted": "consumer",
    "decision_forgotten": "transactional",
    "epoch_not_bumped": "transactional",
    "fenced_member_commits": "consumer",
    "generation_not_checked": "member",
    "commit_after_fencing": "member",
    "group_epoch_falls": "consumer",
    "handed_out_before_released": "consumer",
    "marker_accepted_twice": "transactional",
    "marker_lost": "transactional",
    "moved_before_in_sync": "operator",
    "sessions_not_restarted": "member",
    "share_acceptance_not_persisted": "sharer",
    "share_archived_early": "sharer",
    "share_delivery_limit_ignored": "sharer",
    "share_holder_not_checked": "sharer",
    "share_lock_short": "sharer",
    "share_sessions_not_restarted": "sharer",
    "share_sessions_stay": "sharer",
    "stable_offset_ignores_open": "transactional",
    "stale_member_commits": "consumer",
    "static_away_gives_up": "consumer",
    "static_not_fenced": "member",
    "streams_sessions_not_restarted": "streamer",
    "task_given_early": "streamer",
    "topic_ids_mixed": "operator",
    "uncommitted_cleaned": "keyed",
    "unstable_kept_after_cut": "transactional",
}
"""The client without which nothing of a mutant can be seen: seeds that have none are not run."""
PLAYED = {
    "commit_after_fencing": "commit-for-others",
    "fenced_member_commits": "commit-for-others",
    "generation_not_checked": "commit-for-others",
    "group_epoch_falls": "commit-for-others",
    "isr_shrunk_alone": "acknowledge-alone",
    "share_archived_early": "attempt-again",
    "share_delivery_limit_ignored": "attempt-again",
    "share_holder_not_checked": "attempt-again",
    "stale_member_commits": "commit-for-others",
    "topic_ids_mixed": "make-topic-again",
}
"""The play for it, where the patch does not name one, since the storms of real processes draw faults for it."""


def all_mutants() -> list[Mutant]:
    return [*mutants(), *mutants(PATCHES)]


def hunt(mutant: Mutant, first: int, seeds: int, workers: int) -> str | None:
    """What found it: a seed, or the play that is written out for it, and what was wrong; None: nothing did."""
    with tempfile.TemporaryDirectory(prefix=f"simulated-{mutant.name}-") as directory:
        build(mutant, Path(directory))
        many = ("--until-found", "--first", str(first), "--seeds", str(seeds), "--workers", str(workers))
        kind = NEEDS.get(mutant.name)
        runs: list[tuple[str, ...]] = [many if kind is None else (*many, "--with", kind)]
        plays = [PLAYED.get(mutant.name), *mutant.faults]
        runs += [("--play", play, "--seeds", str(PLAY_ORDERS)) for play in plays if play is not None and play in PLAYS]
        for arguments in runs if seeds else runs[1:]:
            done = subprocess.run(
                [*RUN, *arguments],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": ""},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                lines = [line.strip() for line in done.stdout.splitlines()]
                return _found_by(lines, arguments) if lines else f"it does not run: {done.stderr[-300:]}"
    return None


def _found_by(lines: list[str], arguments: tuple[str, ...]) -> str:
    """`seed 12: two owners`."""
    kind = lines[1].partition(" ")[2].partition(":")[0] if len(lines) > 1 else "it does not end"
    where = f"the play {arguments[1]}" if arguments[0] == "--play" else lines[0].removesuffix(" fails:")
    return f"{where}: {kind}"


def read_found() -> dict[str, str]:
    """By the names of mutants, what found them."""
    lines = FOUND.read_text().splitlines() if FOUND.exists() else []
    return dict(line.split(" | ", 1) for line in lines)


def write_found(name: str, found: str) -> None:
    results = {**read_found(), name: found}
    FOUND.write_text("".join(f"{key} | {value}\n" for key, value in sorted(results.items())))


def table() -> str:
    """What was found, with what is wrong with each, as Markdown."""
    what = {mutant.name: mutant.what for mutant in all_mutants()}
    rows = [f"| `{name}` | {what[name]} | {found} |" for name, found in read_found().items()]
    return "\n".join(["| mutant | what is wrong with it | found by |", "|---|---|---|", *rows, ""])


def page() -> str:
    """The page, with the table as of now."""
    text = PAGE.read_text()
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}{table()}{END}", text, flags=re.DOTALL)


def main(arguments: list[str]) -> int:
    known = {mutant.name: mutant for mutant in all_mutants()}
    parser = argparse.ArgumentParser(description="Run the seeds with each mutant until one finds it.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all without")
    parser.add_argument("--first", type=int, default=1, help="seed")
    parser.add_argument("--seeds", type=int, default=200, help="for each; 0: only its plays")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--page", action="store_true", help="write the table of what was found into the page")
    options = parser.parse_args(arguments)
    if options.page:
        PAGE.write_text(page())
        return 0
    if unknown := set(options.names) - known.keys():
        parser.error(f"no such mutants: {sorted(unknown)}; there are {sorted(known)}")
    surviving = []
    for name in options.names or known:
        began = time.monotonic()
        found = hunt(known[name], options.first, options.seeds, options.workers)
        if found is None:
            surviving.append(name)
        else:
            write_found(name, found)
            PAGE.write_text(page())
        print(f"{name}: {found or 'SURVIVES'} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(surviving)} survive {options.seeds} seeds: {surviving}" if surviving else "all found")
    return int(bool(surviving))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
