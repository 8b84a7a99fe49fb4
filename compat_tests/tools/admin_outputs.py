"""What Kafka 4.3.1's tools of administration print about one broker and its topics, without ids, ports and paths.

    python -m compat_tests.tools.admin_outputs      # writes what they print on Kafka 4.3.1

The commands are run in their order, on a new broker; many change what the next ones print.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from compat_tests.support import quick
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.services import started
from compat_tests.support.tools import MAIN_CLASSES, Result, Tools

RECORDED: Final = Path(__file__).parent / "kafka_4_3_1_admin_outputs.txt"
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
SETTLE_S: Final = 0.4
"""How long Kafka gets before each command, when its output is recorded: its broker hears of a change from its
controller a little after the tool."""

Command = tuple[str, ...]

FILES: Final[dict[str, Any]] = {
    "move": {"version": 1, "partitions": [{"topic": "t1", "partition": 0, "replicas": [0]}]},
    "move-away": {"version": 1, "partitions": [{"topic": "t1", "partition": 0, "replicas": [5]}]},
    "move-to-two": {"version": 1, "partitions": [{"topic": "t1", "partition": 0, "replicas": [0, 5]}]},
    "move-nothing": {"version": 1, "partitions": [{"topic": "none", "partition": 0, "replicas": [0]}]},
    "move-twice": {
        "version": 1,
        "partitions": [{"topic": "t1", "partition": 0, "replicas": [0]}] * 2,
    },
    "topics": {"version": 1, "topics": [{"topic": "t1"}]},
    "delete": {"version": 1, "partitions": [{"topic": "t1", "partition": 0, "offset": 4}]},
    "delete-too-many": {"version": 1, "partitions": [{"topic": "t1", "partition": 0, "offset": 400}]},
    "elect": {"partitions": [{"topic": "t1", "partition": 1}]},
}
"""Files that commands name, as in `{move}`."""


def _of_topics() -> Iterator[Command]:
    for words in (
        ("--create", "--topic", "t1", "--partitions", "2", "--config", "retention.ms=1000000000000"),
        ("--create", "--topic", "t1"),
        ("--create", "--topic", "t1", "--if-not-exists"),
        ("--create", "--topic", "bad name"),
        ("--create", "--topic", "t.2"),
        ("--create", "--topic", "t_2"),
        ("--create", "--topic", "t3", "--replication-factor", "2"),
        ("--create", "--topic", "t3", "--partitions", "0"),
        ("--create", "--topic", "t3", "--replica-assignment", "0:0"),
        ("--create", "--topic", "one"),
        ("--create", "--topic", "t3", "--replica-assignment", "5"),
        ("--create", "--topic", "t3", "--config", "segment.bytes=1000"),
        ("--create", "--topic", "t3", "--config", "no.such.key=1"),
        ("--create", "--topic", "t3", "--config", "message.format.version=3.0"),
        ("--create", "--topic", "t3", "--config", "message.downconversion.enable=true"),
        ("--create", "--topic", "t3", "--config", "message.timestamp.difference.max.ms=1"),
        ("--create", "--topic", "t3", "--config", "remote.storage.enable=true"),
        ("--create", "--topic", "t3", "--config", "cleanup.policy=delete,delete"),
        ("--create", "--topic", "t3", "--config", "min.compaction.lag.ms=5", "--config", "max.compaction.lag.ms=2"),
        ("--list",),
        ("--list", "--topic", "t.*"),
        ("--describe",),
        ("--describe", "--topic", "t1"),
        ("--describe", "--topic", "none"),
        ("--describe", "--topic", "none", "--if-exists"),
        ("--describe", "--topics-with-overrides"),
        ("--describe", "--unavailable-partitions"),
        ("--describe", "--at-min-isr-partitions", "--topic", "t1"),
        ("--alter", "--topic", "t1", "--partitions", "3"),
        ("--alter", "--topic", "t1", "--partitions", "1"),
        ("--alter", "--topic", "t1", "--partitions", "3"),
        ("--alter", "--topic", "none", "--partitions", "3"),
        ("--describe", "--topic", "t1"),
        ("--delete", "--topic", "none"),
        ("--delete", "--topic", "t.2"),
    ):
        yield ("topics", *words)


def _of_configs() -> Iterator[Command]:
    topic = ("--entity-type", "topics", "--entity-name", "t1")
    broker = ("--entity-type", "brokers", "--entity-name", "0")
    brokers = ("--entity-type", "brokers", "--entity-default")
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "0")
    add, delete = "--add-config", "--delete-config"
    for words in (
        ("--describe", *topic),
        ("--describe", "--all", *topic),
        ("--describe", "--entity-type", "topics", "--entity-name", "none"),
        ("--alter", *topic, add, "retention.bytes=5,cleanup.policy=[compact,delete]"),
        ("--alter", *topic, add, "segment.bytes=1048575"),
        ("--alter", *topic, add, "segment.bytes=1048576"),
        ("--alter", *topic, add, "internal.segment.bytes=100"),
        ("--alter", *topic, add, "no.such.key=1"),
        ("--alter", *topic, add, "message.format.version=3.0"),
        ("--alter", *topic, add, "retention.ms=soon"),
        ("--alter", *topic, add, "cleanup.policy=burn"),
        ("--alter", *topic, add, "cleanup.policy="),
        ("--alter", *topic, add, "min.insync.replicas=0"),
        ("--alter", "--entity-type", "topics", "--entity-name", "none", add, "retention.ms=1"),
        ("--describe", *topic),
        ("--alter", *topic, delete, "retention.bytes,cleanup.policy,internal.segment.bytes,segment.bytes"),
        ("--alter", *topic, delete, "flush.ms"),
        ("--describe", *topic),
        ("--describe", *broker),
        ("--describe", *brokers),
        ("--alter", *broker, add, "log.cleaner.threads=2,message.max.bytes=1000000"),
        ("--alter", *brokers, add, "log.retention.ms=1000000000000"),
        ("--describe", *broker),
        ("--describe", *brokers),
        ("--alter", *broker, add, "log.dirs=/x"),
        ("--alter", *broker, add, "no.such.key=1"),
        ("--alter", *broker, delete, "no.such.key"),
        ("--alter", *broker, add, "num.io.threads=500"),
        ("--alter", *broker, add, "num.io.threads=many"),
        ("--alter", *broker, add, "log.segment.bytes=1000"),
        ("--alter", *broker, add, "ssl.keystore.type=PEM"),
        ("--alter", *broker, add, "log.message.downconversion.enable=true"),
        ("--alter", *brokers, add, "listeners=PLAINTEXT://:1"),
        ("--alter", *broker, delete, "log.cleaner.threads,message.max.bytes"),
        ("--alter", *brokers, delete, "log.retention.ms"),
        ("--describe", *broker),
        ("--alter", *loggers, add, "root=ERROR"),
        ("--alter", *loggers, add, "root=LOUD"),
        ("--alter", *loggers, add, "no.such.logger=INFO"),
        ("--alter", *loggers, delete, "root"),
        ("--alter", *loggers, delete, "no.such.logger"),
        ("--describe", "--entity-type", "broker-loggers", "--entity-name", "5"),
    ):
        yield ("configs", *words)
    yield from _of_users(add, delete)


def _of_users(add: str, delete: str) -> Iterator[Command]:
    user, users = ("--entity-type", "users", "--entity-name", "u"), ("--entity-type", "users", "--entity-default")
    client, ip = ("--entity-type", "clients", "--entity-name", "c"), ("--entity-type", "ips", "--entity-name", "::1")
    for words in (
        ("--alter", *user, add, "producer_byte_rate=1000,request_percentage=50"),
        ("--alter", *users, add, "consumer_byte_rate=2000"),
        ("--alter", *user, *client, add, "controller_mutation_rate=3"),
        ("--alter", *client, add, "producer_byte_rate=fast"),
        ("--alter", *client, add, "no_such_rate=1"),
        ("--alter", *ip, add, "connection_creation_rate=5"),
        ("--alter", "--entity-type", "ips", "--entity-name", "10.0.0.1", add, "connection_creation_rate=5"),
        ("--alter", "--entity-type", "ips", "--entity-name", "no host", add, "connection_creation_rate=5"),
        ("--describe", "--entity-type", "users"),
        ("--describe", "--entity-type", "users", "--entity-type", "clients"),
        ("--describe", "--entity-type", "ips"),
        ("--alter", *user, delete, "producer_byte_rate"),
        ("--describe", *user),
        ("--alter", *user, add, "SCRAM-SHA-256=[iterations=4096,password=p]"),
        ("--alter", *user, add, "SCRAM-SHA-256=[iterations=1,password=p]"),
        ("--alter", *user, add, "SCRAM-SHA-1=[password=p]"),
        ("--describe", *user),
        ("--alter", *user, delete, "SCRAM-SHA-256"),
        ("--alter", *user, delete, "SCRAM-SHA-256"),
    ):
        yield ("configs", *words)


def _of_partitions() -> Iterator[Command]:
    reassign, all_of_t1 = "--reassignment-json-file", ("--topic", "t1")
    for words in (
        ("--generate", "--topics-to-move-json-file", "{topics}", "--broker-list", "0"),
        ("--generate", "--topics-to-move-json-file", "{topics}", "--broker-list", "5"),
        ("--execute", reassign, "{move}"),
        ("--execute", reassign, "{move-away}"),
        ("--execute", reassign, "{move-to-two}"),
        ("--execute", reassign, "{move-to-two}", "--disallow-replication-factor-change"),
        ("--execute", reassign, "{move-nothing}"),
        ("--execute", reassign, "{move-twice}"),
        ("--execute", reassign, "{move}", "--throttle", "100000"),
        ("--verify", reassign, "{move}"),
        ("--list",),
        ("--cancel", reassign, "{move}"),
    ):
        yield ("reassign-partitions", *words)
    yield ("delete-records", "--offset-json-file", "{delete}")
    yield ("delete-records", "--offset-json-file", "{delete-too-many}")
    for when in ("earliest", "latest", "max-timestamp", "earliest-local", "latest-tiered", "-6", "0"):
        yield ("get-offsets", *all_of_t1, "--time", when)
    yield ("get-offsets", *all_of_t1, "--partitions", "0,9")
    yield ("get-offsets", "--topic", "none")
    yield ("get-offsets", "--topic-partitions", "t.*:0", "--exclude-internal-topics")
    preferred = ("leader-election", "--election-type", "preferred")
    yield (*preferred, "--all-topic-partitions")
    yield (*preferred, *all_of_t1, "--partition", "0")
    yield (*preferred, *all_of_t1, "--partition", "9")
    yield (*preferred, "--topic", "none", "--partition", "0")
    yield (*preferred, "--path-to-json-file", "{elect}")
    yield ("leader-election", "--election-type", "unclean", *all_of_t1, "--partition", "0")
    yield ("log-dirs", "--describe", "--topic-list", "one")
    yield ("log-dirs", "--describe", "--topic-list", "none")
    yield ("log-dirs", "--describe", "--broker-list", "5", "--topic-list", "t1")


def _of_the_cluster() -> Iterator[Command]:
    yield ("cluster", "cluster-id")
    yield ("cluster", "list-endpoints")
    yield ("cluster", "list-endpoints", "--include-fenced-brokers")
    yield ("cluster", "unregister", "--id", "5")
    yield ("metadata-quorum", "describe", "--status")
    yield ("metadata-quorum", "describe", "--replication")
    yield ("metadata-quorum", "remove-controller", "--controller-id", "5", "--controller-directory-id", "A" * 22)
    of_features: tuple[Command, ...] = (
        ("describe",),
        ("upgrade", "--feature", "group.version=9"),
        ("upgrade", "--feature", "no.such.feature=1"),
        ("downgrade", "--feature", "group.version=0", "--dry-run"),
        ("disable", "--feature", "group.version", "--dry-run"),
        ("version-mapping", "--release-version", "4.3"),
        ("feature-dependencies", "--feature", "group.version=1"),
    )
    for words in of_features:
        yield ("features", *words)
    allow = ("--allow-principal", "User:a", "--operation")
    of_acls: tuple[Command, ...] = (
        ("--list",),
        ("--add", *allow, "Read", "--topic", "t1"),
        ("--add", *allow, "AlterConfigs", "--operation", "DescribeConfigs", "--group", "g"),
        ("--add", *allow, "TwoPhaseCommit", "--transactional-id", "x"),
        ("--add", "--deny-principal", "User:b", "--producer", "--topic", "p", "--resource-pattern-type", "prefixed"),
        ("--add", "--allow-principal", "User:c", "--consumer", "--topic", "t1", "--group", "g", "--deny-host", "h"),
        ("--add", *allow, "CreateTokens", "--user-principal", "User:d"),
        ("--list", "--topic", "t1"),
        ("--list", "--principal", "User:a"),
        ("--list",),
        ("--remove", *allow, "Read", "--topic", "t1", "--force"),
        ("--remove", "--group", "g", "--force"),
        ("--list",),
    )
    for words in of_acls:
        yield ("acls", *words)


def commands() -> list[Command]:
    """In the order in which they are run."""
    return [*_of_topics(), *_of_configs(), *_of_partitions(), *_of_the_cluster()]


def is_a_view(command: Command) -> bool:
    """Whether it changes nothing."""
    return not {"--describe", "--list", "describe"}.isdisjoint(command) or command[0] == "get-offsets"


Shown = Mapping[str, str]
"""The output of each command, in their order."""


def outputs(bootstrap: str, directory: Path, again: Callable[[str, str], bool] = lambda head, text: False) -> Shown:
    """What the tools print. A command that changes nothing is run again for as long as `again` says so."""
    files = {name: directory / f"{name}.json" for name in FILES}
    for name, path in files.items():
        path.write_text(json.dumps(FILES[name]))
    tools, found = Tools("4.x", bootstrap), {}
    for at, command in enumerate(commands()):
        head = f"{at + 1} {' '.join(command)}"
        words = [word if word[0] != "{" else str(files[word[1:-1]]) for word in command]
        found[head] = printed(_run(tools, words))
        while is_a_view(command) and again(head, found[head]):
            found[head] = printed(_run(tools, words))
        if at == 0:
            quick.fill(bootstrap, "t1", [f"{n}" for n in range(10)], timestamps=[10**12 + n for n in range(10)])
    return found


def _run(tools: Tools, command: Sequence[str]) -> Result:
    tool, *words = command
    if tool == "cluster":  # whose subcommands have the option
        return tools.run_main(MAIN_CLASSES[tool], *words, "--bootstrap-server", tools.bootstrap, check=False)
    return tools.run(tool, *words, check=False)


def printed(result: Result) -> str:
    """The exit code and the lines, in an order that is no one's, without what differs from run to run, stack traces and
    lists of options.
    """
    text = "\n".join(re.split(r"^Option +Description", one, flags=re.MULTILINE)[0] for one in (result.out, result.err))
    text = "\n".join(line for line in text.splitlines() if not re.match(r"\s+(at |\.\.\. |Suppressed: )", line))
    text = re.sub(r"bootstrap-server \S+", "bootstrap-server HOST:PORT", text)
    text = re.sub(r"127\.0\.0\.1([: ]+)\d+", r"127.0.0.1\1PORT", text)
    text = re.sub(r"\b(?=[\w-]{22}\b)(?=\S*[A-Z])(?=\S*[a-z])[\w-]{22}(?=[\s\",]|$)", "ID", text)
    text = re.sub(r'"?/[\w/.-]*/(data|logs)\b"?', "DIRECTORY", text)
    text = re.sub(r"\[\d{4}-\d\d-\d\d [\d:,]+\]", "[TIME]", text)
    text = re.sub(r'"size":[1-9]\d*', '"size":SIZE', text)
    text = re.sub(r"Epoch: \d+", "Epoch: NUMBER", text)
    lines = sorted(re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    return "\n".join([f"exit code {result.code}", *filter(None, lines)])


def recorded() -> Shown:
    """What they printed on Kafka 4.3.1."""
    parts = re.split(r"^\$ ", RECORDED.read_text(), flags=re.MULTILINE)[1:]
    return {head: body.rstrip("\n") for head, _, body in (part.partition("\n") for part in parts)}


def _without_elr(tools: Tools) -> None:
    """Eligible leader replicas are of KRaft, and set min.insync.replicas as a default of all brokers."""
    tools.run("features", "downgrade", "--feature", "eligible.leader.replicas.version=0")
    tools.run(
        *("configs", "--alter", "--entity-type", "brokers", "--entity-default"),
        *("--delete-config", "min.insync.replicas"),
    )


def main() -> None:
    seen: set[str] = set()

    def settle(head: str, text: str) -> bool:
        """Once more, a little later."""
        time.sleep(SETTLE_S)
        is_new = head not in seen
        seen.add(head)
        return is_new

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with started(KraftBroker(directory / "kafka", AUTHORIZER, node_id=0)) as broker:
            _without_elr(Tools("4.x", broker.bootstrap))
            found = outputs(broker.bootstrap, directory, settle)
    RECORDED.write_text("\n".join(f"$ {head}\n{text}\n" for head, text in found.items()))


if __name__ == "__main__":
    main()
