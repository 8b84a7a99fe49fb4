"""What passes on each broker, and why a test that passes on Kafka 4.3.1 does not on kpybroker: files in `results/`.

    python -m compat_tests.suites.kafka43.results   # writes the tables of the page again, and names what has no reason

`kafka.txt` and `kpybroker.txt` have the ids of tests that pass, one on a line, and `kafka-fails.txt` those that fail on
Kafka; `served.txt` has those that pass on kpybroker only if tests see no version that it does not serve, and
`release.txt` those that pass only if it takes the place of a Kafka 4.3. `reasons.txt` has all other ids of kpybroker's,
with a reason each: `CLASS.METHOD[N]: REASON`. A run writes reasons that it can tell from the failure itself; all others
are written by hand, and stay. A failure without one is written as `fails`, which is not enough if it passes on Kafka.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from compat_tests.deps import ROOT
from compat_tests.suites.kafka43.verdicts import Result, Verdict

HERE = Path(__file__).resolve().parent
CLASSES = HERE / "classes.txt"
RESULTS = HERE / "results"
REASONS = RESULTS / "reasons.txt"
PAGE = ROOT / "docs" / "testing" / "kafkas-tests.md"
MARKS = ("<!-- written by make kafka-tests: begin -->", "<!-- written by make kafka-tests: end -->")
AGAIN = ("served", "release")
"""Results of a second run, of tests that did not pass in the first."""
SAID = tuple(verdict.value for verdict in Verdict if verdict is not Verdict.PASSED)
"""Reasons that a run writes begin so."""
FAILS_THERE = "fails on Kafka 4.3.1 too"
FAILING = "kafka-fails"
NOT_ASKED = "fails; Kafka 4.3.1 was not asked"
LINE_LENGTH = 120
NAMED_MAX = 10
"""Tests that a cell of the page names; `reasons.txt` has all of them."""
INVOCATION = re.compile(r"\[(\d+)\]$")


def passes(broker: str) -> list[str]:
    """Ids of tests that pass on the broker, or of another file of results."""
    file = RESULTS / f"{broker}.txt"
    return file.read_text().split() if file.exists() else []


def reasons() -> dict[str, str]:
    """Why a test does not pass on kpybroker, by its id."""
    lines = REASONS.read_text().splitlines() if REASONS.exists() else []
    return dict(line.split(": ", 1) for line in lines)


def unserved(class_name: str) -> list[str]:
    """Methods of a class that ended at a version which is not served."""
    wanted = [name for name, why in reasons().items() if why == Verdict.UNSERVED_VERSIONS.value]
    return sorted({INVOCATION.sub("", name).partition(".")[2] for name in wanted if class_of(name) == class_name})


def by_hand(class_name: str) -> list[str]:
    """Methods of a class that fail for a reason which no failure says by itself."""
    wanted = [name for name, why in reasons().items() if not why.startswith(SAID) or why == Verdict.FAILED.value]
    return sorted({INVOCATION.sub("", name).partition(".")[2] for name in wanted if class_of(name) == class_name})


def write(broker: str, class_name: str, found: Iterable[Result], is_whole: bool = True) -> None:
    """What one class did, or some tests of it, in place of what it did before."""
    found = list(found)
    ran = {one.name for one in found}

    def is_kept(name: str) -> bool:
        return class_of(name) != class_name if is_whole else name not in ran

    kept = [name for name in passes(broker) if is_kept(name)]
    whole = set(passes("kpybroker")) if broker in AGAIN else set()
    passed = [one.name for one in found if one.verdict is Verdict.PASSED and one.name not in whole]
    (RESULTS / f"{broker}.txt").write_text("".join(f"{name}\n" for name in sorted({*kept, *passed})))
    if broker == "kafka":
        before = [name for name in passes(FAILING) if is_kept(name)]
        failed = [one.name for one in found if one.verdict is not Verdict.PASSED]
        (RESULTS / f"{FAILING}.txt").write_text("".join(f"{name}\n" for name in sorted({*before, *failed})))
    if broker == "kpybroker":
        explained = {name: why for name, why in reasons().items() if is_kept(name)}
        explained |= explain(found, reasons())
        REASONS.write_text("".join(f"{name}: {why}\n" for name, why in sorted(explained.items())))
    write_page()


def explain(found: Iterable[Result], before: Mapping[str, str]) -> dict[str, str]:
    """Reasons of tests that did not pass. A failure that does not say its cause keeps the reason written by hand."""
    explained: dict[str, str] = {}
    for one in found:
        if one.verdict is Verdict.NEEDS_OBJECTS:
            explained[one.name] = f"{one.verdict.value}: {one.cause}"
        elif one.verdict is Verdict.FAILED and one.name in before and not before[one.name].startswith(SAID):
            explained[one.name] = before[one.name]
        elif one.verdict is not Verdict.PASSED:
            explained[one.name] = one.verdict.value
    return explained


def unexplained(on_kafka: Iterable[str], on_kpybroker: Iterable[str], explained: Mapping[str, str]) -> list[str]:
    """What passes on Kafka and neither passes on kpybroker nor has a reason, of classes that ran on both."""
    here = set(on_kpybroker)
    ran = {class_of(name) for name in [*here, *explained]}
    known = here | {name for name, reason in explained.items() if reason != Verdict.FAILED.value}
    return [name for name in on_kafka if name not in known and class_of(name) in ran]


def class_of(name: str) -> str:
    """`Class` of `Class.method[n]`."""
    return name.partition(".")[0]


def tables() -> list[str]:
    """In Markdown: which classes did not run, how many ids by class, and why which ids do not pass."""
    kafka, here, why = passes("kafka"), passes("kpybroker"), reasons()
    ran = {class_of(name) for name in [*here, *why]}
    parts = [_not_run(ran), _by_class(set(kafka), set(here), why), _by_reason(set(passes(FAILING)), why)]
    return [line for part in parts for line in [*part, ""]][:-1]


def _not_run(ran: Set[str]) -> list[str]:
    """A paragraph about classes of the list."""
    listed = sorted(name.rpartition(".")[2] for name in CLASSES.read_text().split())
    missing = [f"`{name}`" for name in listed if name not in ran]
    text = f"{len(listed) - len(missing)} of {len(listed)} classes of the list have run."
    text += f" Not yet: {', '.join(missing)}." if missing else ""
    return textwrap.wrap(text, LINE_LENGTH, break_long_words=False, break_on_hyphens=False)


def _by_class(kafka: Set[str], here: Set[str], why: Mapping[str, str]) -> list[str]:
    served, release = [set(passes(name)) - here for name in AGAIN]
    rows = [
        "| class | pass on Kafka 4.3.1 | of these here | pass here | more in served versions | more as 4.3 |",
        "|---|---|---|---|---|---|",
    ]
    asked = {class_of(name) for name in kafka}
    for name in sorted({class_of(one) for one in [*here, *why, *kafka]}):
        there = {one for one in kafka if class_of(one) == name}
        ours = {one for one in here if class_of(one) == name}
        counts = f"{len(there)} | {len(there & ours)}" if name in asked else "not run | "
        more, as_release = [sum(class_of(one) == name for one in again) for again in (served, release)]
        rows.append(f"| `{name}` | {counts} | {len(ours)} | {more or ''} | {as_release or ''} |")
    return [*rows, f"| all | {len(kafka)} | {len(kafka & here)} | {len(here)} | {len(served)} | {len(release)} |"]


def _by_reason(failing: Set[str], why: Mapping[str, str]) -> list[str]:
    """Methods of one class and reason together."""
    together: dict[tuple[str, str], Counter[str]] = {}
    for name, said in why.items():
        reason = FAILS_THERE if name in failing else NOT_ASKED if said == Verdict.FAILED.value else said
        methods = together.setdefault((reason, class_of(name)), Counter())
        methods[INVOCATION.sub("", name.partition(".")[2])] += 1
    rows = ["| why not | class | tests |", "|---|---|---|"]
    for (reason, class_name), methods in sorted(together.items()):
        names = [f"``{method}``" + (f" ({n})" if n > 1 else "") for method, n in sorted(methods.items())]
        more = [f"{len(names) - NAMED_MAX} more"] if len(names) > NAMED_MAX else []
        rows.append(f"| {reason} | `{class_name}` | {', '.join(names[:NAMED_MAX] + more)} |")
    return rows


def write_page() -> None:
    """The tables, between the marks of the page."""
    before, begin, rest = PAGE.read_text().partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    assert end, f"{PAGE} has no place for the results"
    PAGE.write_text("\n".join([f"{before}{begin}", "", *tables(), "", f"{end}{after}"]))


def main() -> int:
    write_page()
    missing = unexplained(passes("kafka"), passes("kpybroker"), reasons())
    for name in missing:
        print(f"passes on Kafka, not on kpybroker, and has no reason: {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
