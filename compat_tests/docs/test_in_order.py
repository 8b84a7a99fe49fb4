"""Pages that are followed from their first command to their last, and why the others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.docs.in_order import DOCS, Page, Reader, steps

OF_BUILDERS = ("decisions/", "internals/", "testing/", "samples/")
FAKE = "needs places that only its reader has"
OTHER = "is followed by another test"
KAFKA = "runs Kafka's own tools, which an index of Python does not have; another test does"
SPARK = "needs Spark's jars; compat_tests/spark runs it"
INSIDE = "is run by the command in front of it"
STARTED = "is how the test starts its broker"
OF_THE_CLUSTER = (
    "default.replication.factor=1",
    "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
    "super.users=User:ANONYMOUS",
)
"""Of the page of the command line, which moves partitions and sets ACLs."""
PAGES = (
    Page(
        "start/index",
        (),
        {"make install": OTHER, ". .venv/bin/activate": OTHER, "kpybroker dev": OTHER},
    ),
    Page(
        "guides/testing",
        ("--ephemeral", "--control", "0"),
        {
            "pytest --kafka-bootstrap kafka.example:9093 --kafka-command-config admin.properties": FAKE,
            "pytest --kafka-profile staging": FAKE,
        },
    ),
    Page("guides/retention"),
    Page("guides/groups-and-lag", before=("pip install confluent-kafka", "samples/start/first_message.py")),
    Page(
        "guides/schema-registry",
        ("--ephemeral", "--registry", "0"),
        {"samples/registry/users.sh": FAKE, "samples/registry/read_orders.py": OTHER},
    ),
    Page("guides/faults", ("--ephemeral", "--control", "0")),
    Page("guides/failing-cluster", ("--ephemeral", "--brokers", "3", "--control", "0")),
    Page("guides/client-metrics"),
    Page(
        "guides/command-line",
        ("--ephemeral", "--brokers", "3", *(word for key in OF_THE_CLUSTER for word in ("--override", key))),
        {
            "kpybroker doctor broker.example.com:9093 --command-config client.properties": FAKE,
            "kpybroker mirror orders payments -b old:9092 --to new:9092 --group copy": FAKE,
            "kpybroker user set alice --mechanism SCRAM-SHA-512": "asks for a password at the prompt",
            "samples/commands/profiles.sh": FAKE,
            "samples/commands/programs.sh": OTHER,
            "samples/commands/schemas.sh": OTHER,
        },
        before=(
            "kpybroker topic create greetings app-1",
            "echo hello | kpybroker topic produce app-1",
            "kpybroker topic consume app-1 --group app-1 --num 1",
            "echo hello | kpybroker topic produce greetings",
            "kpybroker topic consume greetings --group readers --num 1",
        ),
    ),
    Page("guides/ci", None, {"samples/ci/service.sh": OTHER}),
    Page("guides/logs", ("--ephemeral",), {"samples/logs/levels.sh": KAFKA, "samples/logs/merge.sh": OTHER}),
    Page(
        "guides/transactions",
        ("--ephemeral",),
        {f"samples/delivery/{name}.py": INSIDE for name in ("at_most_once", "at_least_once", "exactly_once")},
    ),
    Page("guides/zookeeper-clients", ("--ephemeral", "--zookeeper-port", "0"), {"samples/zookeeper/start.sh": STARTED}),
    Page("reference/python-api"),
    Page("reference/registry", ("--ephemeral", "--registry", "0")),
)
NOT_FOLLOWED = {
    "examples/": "each project in an environment of its own, by test_examples.py",
    "guides/backup": FAKE,
    "guides/connect": KAFKA,
    "guides/console": "has no command but the installation",
    "guides/containers": "needs an engine of containers",
    "guides/metrics": OTHER,
    "guides/mirroring": FAKE,
    "guides/moving": FAKE,
    "guides/pipelines": SPARK,
    "guides/processes": OTHER,
    "guides/queues": "the same commands are in tests/client/actions/test_queues.py",
    "guides/security/": "needs a broker with logins and certificates, by test_security_samples.py",
    "guides/spark": SPARK,
    "guides/streams-groups": "needs a Java application; tests/client/actions/test_streams.py has the same commands",
    "guides/systemd": "is for the root of a machine",
    "guides/three-brokers": FAKE,
    "index": "has the first commands of start/index",
    "reference/command-line": "has no command but the installation",
    "start/questions": "has no command but the installation",
}
"""By what a page's name begins with."""


def test_each_page_with_commands_is_followed_or_says_why_not() -> None:
    names = {str(file.relative_to(DOCS).with_suffix("")) for file in DOCS.rglob("*.md")}
    with_commands = {name for name in names if not name.startswith(OF_BUILDERS) and steps(Page(name))}
    followed = {page.name for page in PAGES}
    without_reason = [name for name in with_commands - followed if not name.startswith(tuple(NOT_FOLLOWED))]
    assert not without_reason
    unused = [one for one in NOT_FOLLOWED if not any(name.startswith(one) for name in with_commands - followed)]
    assert not unused


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_left_out_of_a_page_is_on_it(page: Page) -> None:
    every = steps(page._replace(without={}))
    assert set(page.without) <= set(every)
    assert [step for step in every if step.startswith("pip install")], "the page says nowhere what to install"


@pytest.mark.wide
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_can_be_followed(page: Page, tmp_path: Path) -> None:
    printed = Reader(tmp_path).follow(page)
    assert len(printed) == len(steps(page)) >= 2
