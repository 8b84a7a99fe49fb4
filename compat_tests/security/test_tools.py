"""Kafka's own tools, of both versions, over SASL_SSL with SCRAM; nothing is allowed without an ACL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.logins.sasl_sides import configs_on_zookeeper, may_log_in
from compat_tests.security.sasl_ssl_only import ALICE, PASSWORDS, SCRAM, Locked, locked_broker
from compat_tests.support.tools import VERSIONS, Tools
from compat_tests.support.waiting import eventually

EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
RESOURCE = re.compile(r"ResourcePattern\(resourceType=(\w+), name=([^,]+), patternType=(\w+)\)")
ENTRY = re.compile(r"\(principal=(.+?), host=([^,]+), operation=(\w+), permissionType=(\w+)\)")
Acl = tuple[str, ...]


@pytest.fixture(scope="module")
def locked(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    with locked_broker(launcher, tmp_path_factory.mktemp("locked")) as one:
        yield one


def acls_in(output: str) -> set[Acl]:
    """(type, name, pattern, principal, host, operation, permission) of each ACL that kafka-acls has printed."""
    found: set[Acl] = set()
    resource: Acl = ()
    for line in output.splitlines():
        if match := RESOURCE.search(line):
            resource = match.groups()
        if entry := ENTRY.search(line):
            found.add((*resource, *entry.groups()))
    return found


# --- kafka-acls


def resources(name: str, pattern: str) -> dict[str, tuple[str, str]]:
    """The option of kafka-acls for each type of resource that has names: (type, name)."""
    options = {"topic": "TOPIC", "group": "GROUP", "transactional-id": "TRANSACTIONAL_ID"}
    if pattern == "LITERAL":
        options |= {"delegation-token": "DELEGATION_TOKEN"}
    return {option: (kind, f"{name}-{option}") for option, kind in options.items()}


@EVERY_VERSION
@pytest.mark.parametrize("pattern", ["LITERAL", pytest.param("PREFIXED", marks=pytest.mark.wide)])
def test_acls_of_every_type_of_resource(locked: Locked, name: str, version: str, pattern: str) -> None:
    """Added, listed and removed in one command each; what was there before stays."""
    before = acls_in(locked.run(version, "acls", "--list").out)
    wanted = resources(name, pattern)
    options = [text for option, (_, named) in wanted.items() for text in (f"--{option}", named)]
    options += ["--cluster"] if pattern == "LITERAL" else ["--resource-pattern-type", "prefixed"]
    who = ["--allow-principal", f"User:{name}", "--allow-host", "10.1.2.3", "--operation", "Describe"]
    deny = ["--deny-principal", "User:CN=eve,O=Example", "--deny-host", "*"]
    locked.run(version, "acls", "--add", *options, *who, *deny)
    listed = acls_in(locked.run(version, "acls", "--list").out) - before
    named = set(wanted.values()) | ({("CLUSTER", "kafka-cluster")} if pattern == "LITERAL" else set())
    assert listed == {
        (kind, one, pattern, *entry)
        for kind, one in named
        for entry in (
            (f"User:{name}", "10.1.2.3", "DESCRIBE", "ALLOW"),
            ("User:CN=eve,O=Example", "*", "DESCRIBE", "DENY"),
        )
    }
    of_topic = ["--list", "--topic", wanted["topic"][1], "--resource-pattern-type", pattern.lower()]
    assert len(acls_in(locked.run(version, "acls", *of_topic).out)) == 2
    of_alice = acls_in(locked.run(version, "acls", "--list", "--principal", f"User:{name}").out)
    assert of_alice == {acl for acl in listed if acl[3] == f"User:{name}"}
    locked.run(version, "acls", "--remove", "--force", *options, *deny, "--operation", "Describe")
    assert acls_in(locked.run(version, "acls", "--list").out) - before == of_alice
    locked.run(version, "acls", "--remove", "--force", *options)
    assert acls_in(locked.run(version, "acls", "--list").out) == before


@EVERY_VERSION
def test_acls_of_users_and_those_that_do_not_fit(locked: Locked, name: str, version: str) -> None:
    user = ["--user-principal", f"User:{name}"]
    operations = ["--operation", "CreateTokens", "--operation", "DescribeTokens"]
    locked.run(version, "acls", "--add", *user, "--allow-principal", "User:bob", *operations)
    listed = acls_in(locked.run(version, "acls", "--list", *user).out)
    assert listed == {
        ("USER", f"User:{name}", "LITERAL", "User:bob", "*", operation, "ALLOW")
        for operation in ("CREATE_TOKENS", "DESCRIBE_TOKENS")
    }
    locked.run(version, "acls", "--remove", "--force", *user)
    assert not acls_in(locked.run(version, "acls", "--list", *user).out)
    denied = locked.run(version, "acls", "--list", user=ALICE, check=False)
    assert "ClusterAuthorizationException" in denied.out + denied.err


@pytest.mark.wide
def test_acls_of_the_tool_that_writes_to_zookeeper(locked: Locked, name: str) -> None:
    """Kafka 3.9.1 is the last that has it. The broker decides by them, and it reads the broker's."""
    tools = Tools("3.9.1", locked.broker.bootstrap)
    on_tree = ["--authorizer-properties", f"zookeeper.connect={locked.zookeeper}"]
    prefixed = ["--topic", name, "--resource-pattern-type", "prefixed"]

    def by_the_broker() -> set[Acl]:
        listed = acls_in(locked.run("4.x", "acls", "--list", *prefixed).out)
        return {acl for acl in listed if acl[1] == name}

    locked.run("3.9.1", "topics", "--create", "--topic", f"{name}-1")
    assert f"{name}-1" not in locked.run("4.x", "topics", "--list", user=ALICE).lines
    who = ["--allow-principal", f"User:{ALICE}", "--operation", "Describe"]
    tools.run("acls-zookeeper", *on_tree, "--add", *who, *prefixed)
    ours = ("TOPIC", name, "PREFIXED", f"User:{ALICE}", "*", "DESCRIBE", "ALLOW")
    eventually(lambda: by_the_broker() == {ours}, "the tool's ACL")
    assert f"{name}-1" in locked.run("4.x", "topics", "--list", user=ALICE).lines
    deny = ["--deny-principal", f"User:{ALICE}", "--operation", "All", "--topic", f"{name}-1"]
    locked.run("3.9.1", "acls", "--add", *deny)
    seen = acls_in(tools.run("acls-zookeeper", *on_tree, "--list", "--topic", f"{name}-1").out)
    assert ("TOPIC", f"{name}-1", "LITERAL", f"User:{ALICE}", "*", "ALL", "DENY") in seen
    assert f"{name}-1" not in locked.run("4.x", "topics", "--list", user=ALICE).lines
    tools.run("acls-zookeeper", *on_tree, "--remove", "--force", "--topic", f"{name}-1")
    eventually(lambda: f"{name}-1" in locked.run("4.x", "topics", "--list", user=ALICE).lines, "the denial is gone")
    tools.run("acls-zookeeper", *on_tree, "--remove", "--force", *prefixed)
    eventually(lambda: by_the_broker() == set(), "the tool's ACL is gone")


# --- kafka-configs


@EVERY_VERSION
@pytest.mark.wide
def test_a_user_of_scram_and_its_quota(locked: Locked, name: str, version: str) -> None:
    """Both are of the same entity, and each can be taken away alone."""
    user = ["--entity-type", "users", "--entity-name", name]
    for mechanism in ("SCRAM-SHA-256", SCRAM):
        added = f"{mechanism}=[iterations=5000,password=s-1]"
        locked.run(version, "configs", "--alter", *user, "--add-config", added)
    assert may_log_in(locked.broker.bootstrap, SCRAM, name, "s-1", locked.ca)
    locked.run(
        version, "configs", "--alter", *user, "--add-config", "producer_byte_rate=1048576,request_percentage=150"
    )
    shown = locked.run(version, "configs", "--describe", *user).out
    assert re.search(rf"SCRAM credential configs for user-principal '{name}' are .*{SCRAM}=iterations=5000", shown)
    assert re.search(rf"Quota configs for user-principal '{name}' are .*producer_byte_rate=1048576\.0", shown)
    assert "request_percentage=150.0" in shown
    locked.run(version, "configs", "--alter", *user, "--delete-config", SCRAM)
    assert not may_log_in(locked.broker.bootstrap, SCRAM, name, "s-1", locked.ca)
    locked.run(version, "configs", "--alter", *user, "--delete-config", "producer_byte_rate")
    shown = locked.run(version, "configs", "--describe", *user).out
    assert f"{SCRAM}=" not in shown
    assert "producer_byte_rate" not in shown
    assert "request_percentage=150.0" in shown
    for key in ("SCRAM-SHA-256", "request_percentage"):
        locked.run(version, "configs", "--alter", *user, "--delete-config", key)
    assert not locked.run(version, "configs", "--describe", *user).lines


QUOTAS = [
    (["--entity-type", "users", "--entity-default"], "the default user-principal", "consumer_byte_rate"),
    (["--entity-type", "clients", "--entity-name", "NAME"], "client-id 'NAME'", "producer_byte_rate"),
    (["--entity-type", "clients", "--entity-default"], "the default client-id", "request_percentage"),
    (
        ["--entity-type", "users", "--entity-name", "NAME", "--entity-type", "clients", "--entity-name", "c"],
        "user-principal 'NAME', client-id 'c'",
        "controller_mutation_rate",
    ),
    (
        ["--entity-type", "users", "--entity-name", "NAME", "--entity-type", "clients", "--entity-default"],
        "user-principal 'NAME', the default client-id",
        "consumer_byte_rate",
    ),
    (["--entity-type", "ips", "--entity-name", "10.9.8.7"], "ip '10.9.8.7'", "connection_creation_rate"),
    (["--entity-type", "ips", "--entity-default"], "the default ip", "connection_creation_rate"),
]


@EVERY_VERSION
@pytest.mark.parametrize(
    ("entity", "shown_as", "key"),
    [
        pytest.param(*case, id=case[1], marks=[] if case[0][1] == "ips" or "c" in case[0] else [pytest.mark.wide])
        for case in QUOTAS
    ],
)
def test_quotas_of_every_entity(
    locked: Locked, name: str, version: str, entity: list[str], shown_as: str, key: str
) -> None:
    named = [text.replace("NAME", name) for text in entity]
    locked.run(version, "configs", "--alter", *named, "--add-config", f"{key}=100000")
    try:
        line = f"Quota configs for {shown_as.replace('NAME', name)} are {key}=100000.0"
        assert line in locked.run(version, "configs", "--describe", *named).lines
    finally:
        locked.run(version, "configs", "--alter", *named, "--delete-config", key)
    assert key not in locked.run(version, "configs", "--describe", *named).out


@pytest.mark.wide
def test_users_of_kafka_configs_on_zookeeper(locked: Locked, name: str) -> None:
    user = ["--entity-type", "users", "--entity-name", name]
    added = f"{SCRAM}=[iterations=4096,password=z-1]"
    configs_on_zookeeper(locked.zookeeper, "--alter", *user, "--add-config", added)
    eventually(lambda: may_log_in(locked.broker.bootstrap, SCRAM, name, "z-1", locked.ca), "the user logs in")
    assert f"{SCRAM}=iterations=4096" in locked.run("4.x", "configs", "--describe", *user).out
    configs_on_zookeeper(locked.zookeeper, "--alter", *user, "--delete-config", SCRAM)
    eventually(lambda: not may_log_in(locked.broker.bootstrap, SCRAM, name, "z-1", locked.ca), "the user is gone")


# --- kafka-delegation-tokens


@EVERY_VERSION
def test_tokens_are_created_used_renewed_and_ended(locked: Locked, name: str, version: str, tmp_path: Path) -> None:
    """By alice for herself, who lets bob renew it; no one else sees it."""

    def run(*arguments: str, user: str = ALICE, check: bool = True) -> str:
        result = locked.run(version, "delegation-tokens", *arguments, user=user, check=check)
        return result.out + result.err

    made = run("--create", "--max-life-time-period", "3600000", "--renewer-principal", "User:bob")
    token_id, hmac, owner, requester, renewers, *_ = made.splitlines()[-1].split()
    assert (owner, requester, renewers) == ("User:alice", "User:alice", "[User:bob]")
    assert token_id in run("--describe", "--owner-principal", "User:alice")
    assert token_id in run("--describe", "--owner-principal", "User:alice", user="admin")
    assert token_id not in run("--describe"), "the tool asks for the tokens of no one"
    config = tmp_path / "token.properties"
    config.write_text(
        Path(locked.settings(ALICE))
        .read_text()
        .replace('username="alice"', f'username="{token_id}"')
        .replace(f'password="{PASSWORDS[ALICE]}"', f'password="{hmac}" tokenauth="true"')
    )
    locked.run(version, "topics", "--create", "--topic", name)
    locked.run(version, "acls", "--add", "--allow-principal", "User:alice", "--operation", "Describe", "--topic", name)
    assert name in locked.run(version, "topics", "--list", config=str(config)).lines
    assert "DelegationTokenDisabledException" not in run("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    refused = run("--renew", "--renew-time-period", "-1", "--hmac", hmac[:-4] + "AAA=", check=False)
    assert "DelegationTokenNotFoundException" in refused
    assert "Completed" in run("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert token_id not in run("--describe", "--owner-principal", "User:alice")
    late = locked.run(version, "topics", "--list", config=str(config), check=False)
    assert "SaslAuthenticationException" in late.out + late.err
    assert hmac not in locked.broker.service.output()


@EVERY_VERSION
def test_a_token_for_another_user_needs_an_acl(locked: Locked, name: str, version: str) -> None:
    for_other = ["--create", "--max-life-time-period", "-1", "--owner-principal", f"User:{name}"]
    refused = locked.run(version, "delegation-tokens", *for_other, user=ALICE, check=False)
    assert "DelegationTokenAuthorizationException" in refused.out + refused.err
    user = ["--user-principal", f"User:{name}"]
    locked.run(version, "acls", "--add", "--allow-principal", "User:alice", "--operation", "CreateTokens", *user)
    made = locked.run(version, "delegation-tokens", *for_other, user=ALICE)
    assert made.lines[-1].split()[2:4] == [f"User:{name}", "User:alice"]


# --- console and perf clients


@EVERY_VERSION
def test_console_clients_need_acls_and_then_work(locked: Locked, name: str, version: str) -> None:
    locked.run(version, "topics", "--create", "--topic", name, "--partitions", "2")
    produce = ["console-producer", "--topic", name, "--property", "parse.key=true", "--property", "key.separator=:"]
    consume = [
        *("console-consumer", "--topic", name, "--group", f"{name}-g", "--from-beginning", "--max-messages", "20"),
        *("--property", "print.key=true", "--timeout-ms", "60000"),
    ]
    records = [f"k{number}:value {number} ü" for number in range(20)]
    denied = locked.run(version, *produce, user=ALICE, stdin="k:denied\n", check=False)
    assert "TopicAuthorizationException" in denied.out + denied.err
    denied = locked.run(version, *consume, user=ALICE, check=False)
    assert "AuthorizationException" in denied.out + denied.err
    who = ["--allow-principal", f"User:{ALICE}", "--topic", name]
    locked.run(version, "acls", "--add", *who, "--producer")
    locked.run(
        version, "acls", "--add", *who, "--consumer", "--group", f"{name}-", "--resource-pattern-type", "prefixed"
    )
    locked.run(version, "acls", "--add", *who, "--consumer", "--group", f"{name}-g")
    locked.run(version, *produce, user=ALICE, stdin="".join(f"{record}\n" for record in records))
    read = locked.run(version, *consume, user=ALICE)
    assert sorted(read.lines) == sorted(record.replace(":", "\t", 1) for record in records)


@EVERY_VERSION
@pytest.mark.wide
def test_perf_clients_log_in_and_keep_to_a_quota(locked: Locked, name: str, version: str) -> None:
    """Of 2 000 records of 1 KB at most 50 KB a second: the clients report that they were throttled."""
    locked.run(version, "topics", "--create", "--topic", name)
    who = ["--allow-principal", f"User:{ALICE}", "--topic", name]
    locked.run(version, "acls", "--add", *who, "--producer", "--transactional-id", name)
    locked.run(version, "acls", "--add", *who, "--consumer", "--group", name)
    produce = [
        *("producer-perf-test", "--topic", name, "--num-records", "2000", "--record-size", "1000"),
        *("--throughput", "-1", "--print-metrics"),
        *("--producer-props", f"bootstrap.servers={locked.broker.bootstrap}", "client.id=perf"),
    ]

    def throttled_ms(output: str) -> float:
        match = re.search(r"producer-metrics:produce-throttle-time-max:\S*\s*:\s*([\d.]+)", output)
        assert match is not None, output
        return float(match[1])

    def produced(*more: str) -> str:
        result = locked.run(version, *produce, *more, user=ALICE)
        assert re.search(r"^2000 records sent", result.out, re.MULTILINE), str(result)
        return result.out

    assert throttled_ms(produced()) == 0
    entity = ["--entity-type", "users", "--entity-name", ALICE, "--entity-type", "clients", "--entity-name", "perf"]
    locked.run(version, "configs", "--alter", *entity, "--add-config", "producer_byte_rate=150000")
    assert throttled_ms(produced()) > 0
    locked.run(version, "configs", "--alter", *entity, "--delete-config", "producer_byte_rate")
    produced("--transactional-id", name, "--transaction-duration-ms", "1000")
    consumed = locked.run(
        version, "consumer-perf-test", "--topic", name, "--group", name, "--messages", "6000", "--timeout", "60000",
        user=ALICE,
    )  # fmt: skip
    columns = [column.strip() for column in consumed.lines[-1].split(",")]
    assert int(columns[4]) >= 6000, str(consumed)
