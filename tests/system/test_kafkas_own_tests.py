"""What `make kafka-tests` makes of JUnit's reports: names that do not depend on chance, verdicts, and what was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.suites.kafka43 import results
from compat_tests.suites.kafka43.principals import by_listener
from compat_tests.suites.kafka43.results import class_of, explain, passes, reasons, unexplained
from compat_tests.suites.kafka43.run import chosen
from compat_tests.suites.kafka43.verdicts import Result, Verdict, judge, lost, read, split, table
from kpybroker.core.authorizer import ANONYMOUS, Principal

REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="JUnit Jupiter" tests="6">
<testcase name="testJoin()[3]" classname="kafka.server.JoinTest" time="1,001.5"></testcase>
<testcase name="testJoin()[2]" classname="kafka.server.JoinTest" time="0">
<skipped>the same as isolated</skipped>
</testcase>
<testcase name="testJoin()[1]" classname="kafka.server.JoinTest" time="2.5">
<failure message="expected: &lt;1&gt; but was: &lt;2&gt;" type="org.opentest4j.AssertionFailedError">at X</failure>
</testcase>
<testcase name="testJoin()[4]" classname="kafka.server.JoinTest" time="0">
<skipped>the same as isolated</skipped>
</testcase>
<testcase name="testObjects(ClusterInstance)[10]" classname="kafka.server.JoinTest" time="2.5">
<error message="BrokerServer.logManager" type="org.apache.kafka.common.test.junit.NeedsBrokerObjects">at X</error>
</testcase>
<testcase name="testPlain()" classname="kafka.server.OtherTest" time="0.1"></testcase>
</testsuite>
"""


def test_a_report_names_invocations_without_those_that_were_left_out() -> None:
    found = {one.name: (one.verdict, one.seconds) for one in read(REPORT)}
    assert found == {
        "JoinTest.testJoin[1]": (Verdict.FAILED, 2.5),
        "JoinTest.testJoin[2]": (Verdict.PASSED, 1001.5),
        "JoinTest.testObjects[1]": (Verdict.NEEDS_OBJECTS, 2.5),
        "OtherTest.testPlain[1]": (Verdict.PASSED, 0.1),
    }
    causes = {one.name: one.cause for one in read(REPORT)}
    assert causes["JoinTest.testJoin[1]"].startswith("org.opentest4j.AssertionFailedError: expected: <1> but was: <2>")
    assert (causes["JoinTest.testJoin[2]"], causes["JoinTest.testObjects[1]"]) == ("", "BrokerServer.logManager")


@pytest.mark.parametrize(
    ("name", "method", "invocation"),
    [
        ("testJoin()[3]", "testJoin", 3),
        ("testJoin(ClusterInstance, String)[12]", "testJoin", 12),
        ("testJoin{ClusterInstance}[2]", "testJoin", 2),
        ("testJoin(ClusterInstance)", "testJoin", 1),
        ("testJoin", "testJoin", 1),
        ("initializationError of all", "initializationError of all", 1),
    ],
)
def test_the_name_of_an_invocation(name: str, method: str, invocation: int) -> None:
    assert split(name) == (method, invocation)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("java.lang.AssertionError: no", Verdict.FAILED),
        ("ExecutionException\nCaused by: x.NeedsBrokerObjects: metrics", Verdict.NEEDS_OBJECTS),
        ("UnsupportedVersionException: The node does not support LIST", Verdict.UNSERVED_VERSIONS),
        ("EOFException: \nat X.connectAndReceive(X:1)", Verdict.UNSERVED_VERSIONS),
        ("EOFException\nat BaseRequestTest.sendAndReceive(X:1)", Verdict.UNSERVED_VERSIONS),
        ("EOFException: \nat X.readLine(X:1)", Verdict.FAILED),
    ],
)
def test_why_a_test_failed(text: str, verdict: Verdict) -> None:
    assert judge(text) is verdict


def test_an_expected_test_that_failed_or_is_gone_was_lost_unless_its_class_did_not_run() -> None:
    results = {one.name: one for one in read(REPORT)}
    names = ["JoinTest.testJoin[1]", "JoinTest.testJoin[2]", "JoinTest.testJoin[3]", "AwayTest.testX[1]"]
    assert lost(names, results, ["JoinTest", "OtherTest"]) == ["JoinTest.testJoin[1]", "JoinTest.testJoin[3]"]


def test_the_table_counts_by_class() -> None:
    rows = table([*read(REPORT), Result("JoinTest.testZ[1]", Verdict.PASSED, 0.0, "")])
    assert rows[2:] == [
        "| `JoinTest` | 2 | 1 |  | 1 |",
        "| `OtherTest` | 1 |  |  |  |",
        "| all | 3 | 1 |  | 1 |",
    ]


ON_KAFKA = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="JUnit Jupiter" tests="4">
<testcase name="testJoin(ClusterInstance)[1]" classname="kafka.server.JoinTest" time="1">
<failure message="no" type="AssertionError">at X</failure>
<system-out>unique-id: x\ndisplay-name: testJoin [1] Type=Raft-Combined, MetadataVersion=4.3</system-out>
</testcase>
<testcase name="testJoin(ClusterInstance)[2]" classname="kafka.server.JoinTest" time="1">
<system-out>unique-id: x\ndisplay-name: testJoin [2] Type=Raft-Isolated, MetadataVersion=4.3</system-out>
</testcase>
<testcase name="testJoin(ClusterInstance)[3]" classname="kafka.server.JoinTest" time="1">
<system-out>unique-id: x\ndisplay-name: testJoin [3] Type=Raft-Isolated, MetadataVersion=4.3</system-out>
</testcase>
<testcase name="testAlone(ClusterInstance)[1]" classname="kafka.server.JoinTest" time="1">
<system-out>unique-id: x\ndisplay-name: testAlone [1] Type=Raft-Combined, MetadataVersion=4.3</system-out>
</testcase>
</testsuite>
"""


def test_of_two_clusters_of_kafkas_for_one_test_the_combined_one_is_left_out() -> None:
    assert {one.name: one.verdict for one in read(ON_KAFKA)} == {
        "JoinTest.testAlone[1]": Verdict.PASSED,
        "JoinTest.testJoin[1]": Verdict.PASSED,
        "JoinTest.testJoin[2]": Verdict.PASSED,
    }


def test_patterns_choose_classes_and_results_are_of_one_of_them() -> None:
    assert chosen(["JoinGroup"]) == ["kafka.server.JoinGroupRequestTest"]
    assert set(chosen(["*GroupRequestTest"])) >= set(chosen(["JoinGroup", "SyncGroup", "LeaveGroup"]))
    assert len(chosen([])) > 50
    classes = {name.rpartition(".")[2] for name in chosen([])}
    assert {class_of(name) for name in [*passes("kpybroker"), *passes("kafka"), *reasons()]} <= classes


def test_a_reason_is_what_the_failure_says_or_else_what_was_written_by_hand() -> None:
    found = [
        Result("T.a[1]", Verdict.PASSED, 0.0, ""),
        Result("T.b[1]", Verdict.NEEDS_OBJECTS, 0.0, "metrics"),
        Result("T.c[1]", Verdict.FAILED, 0.0, "x"),
        Result("T.d[1]", Verdict.FAILED, 0.0, "x"),
        Result("T.e[1]", Verdict.FAILED, 0.0, "x"),
    ]
    objects, versions = Verdict.NEEDS_OBJECTS.value, Verdict.UNSERVED_VERSIONS.value
    before = {"T.a[1]": "once", "T.b[1]": versions, "T.c[1]": "compares the order", "T.d[1]": f"{objects}: metrics"}
    fails = Verdict.FAILED.value
    assert explain(found, before) == {
        "T.b[1]": f"{objects}: metrics",
        "T.c[1]": "compares the order",
        "T.d[1]": fails,
        "T.e[1]": fails,
    }


def test_what_passes_on_kafka_only_needs_a_reason_once_its_class_ran() -> None:
    on_kafka = ["A.a[1]", "A.b[1]", "A.c[1]", "B.a[1]", "C.a[1]", "C.b[1]"]
    assert unexplained(on_kafka, ["A.a[1]"], {"A.b[1]": "why", "C.b[1]": "why"}) == ["A.c[1]", "C.a[1]"]
    assert unexplained(["A.b[1]"], ["A.a[1]"], {"A.b[1]": Verdict.FAILED.value}) == ["A.b[1]"]


def test_what_passes_on_kafka_passes_here_or_has_a_reason_and_not_both() -> None:
    assert unexplained(passes("kafka"), passes("kpybroker"), reasons()) == []
    assert not set(passes("kpybroker")) & set(reasons())


def test_results_of_a_class_replace_those_before_and_the_page_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{results.MARKS[0]}\nold\n{results.MARKS[1]}\nafter\n")
    for name, path in (("RESULTS", tmp_path), ("REASONS", tmp_path / "reasons.txt"), ("PAGE", page)):
        monkeypatch.setattr(results, name, path)
    passed, unserved = Verdict.PASSED, Verdict.UNSERVED_VERSIONS

    def found(**verdicts: Verdict) -> list[Result]:
        return [Result(f"{name.replace('_', '.')}[1]", verdict, 0.0, "x") for name, verdict in verdicts.items()]

    results.write("kpybroker", "A", found(A_a=unserved, A_b=passed, A_c=unserved))
    results.write("kpybroker", "B", found(B_a=passed))
    results.write("kafka", "A", found(A_a=passed, A_b=passed, A_c=Verdict.FAILED))
    results.write("served", "A", found(A_a=passed, A_b=passed, A_c=Verdict.FAILED))
    assert [passes(name) for name in ("kpybroker", "kafka", "served")] == [
        ["A.b[1]", "B.a[1]"],
        ["A.a[1]", "A.b[1]"],
        ["A.a[1]"],
    ]
    assert reasons() == {"A.a[1]": unserved.value, "A.c[1]": unserved.value}
    assert (results.unserved("A"), results.unserved("B")) == (["a", "c"], [])
    lines = page.read_text().splitlines()
    assert lines[:2] + lines[-2:] == ["before", results.MARKS[0], results.MARKS[1], "after"]
    rows = {"| `A` | 2 | 1 | 1 | 1 |  |", "| `B` | not run |  | 1 |  |  |", "| all | 2 | 1 | 2 | 1 | 0 |"}
    assert rows <= set(lines)
    assert {f"| {unserved.value} | `A` | ``a`` |", f"| {results.FAILS_THERE} | `A` | ``c`` |"} <= set(lines)
    results.write("kpybroker", "A", found(A_a=passed, A_b=Verdict.FAILED), is_whole=False)
    assert passes("kpybroker") == ["A.a[1]", "B.a[1]"]
    assert reasons() == {"A.b[1]": Verdict.FAILED.value, "A.c[1]": unserved.value}
    assert results.by_hand("A") == ["b"]
    results.write("release", "A", found(A_a=passed, A_b=passed))
    assert passes("release") == ["A.b[1]"]
    assert "| `A` | 2 | 1 | 1 |  | 1 |" in page.read_text().splitlines()
    results.write("kpybroker", "A", found(A_a=passed))
    assert (passes("kpybroker"), reasons()) == (["A.a[1]", "B.a[1]"], {})


def test_each_listener_has_the_principal_that_the_command_line_gives_it() -> None:
    found = by_listener("BROKER=Group:broker,EXTERNAL=User:ANONYMOUS")
    assert found == {"BROKER": Principal("Group", "broker"), "EXTERNAL": ANONYMOUS}
