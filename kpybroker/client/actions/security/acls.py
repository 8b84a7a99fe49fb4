"""`acl list`, `create` and `delete`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from kpybroker.client.actions.topic_changes import DRY_RUN
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import EXIT_USAGE, CommandError, Failures, check, note, usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_acls import DescribeAclsRequest

ANY: Final = 1
"""Kafka's number, of each of the four."""

CLUSTER_NAME: Final = "kafka-cluster"
RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.BROKER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
"""Kafka's types of resources; 4 is a broker to librdkafka and the cluster to ACLs."""

KINDS: Final = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user"}
"""By Kafka's numbers."""
NAMES: Final = {kind: name for name, kind in RESOURCES.items()}
PRODUCER: Final = ("WRITE", "DESCRIBE", "CREATE")
CONSUMER: Final = ("READ", "DESCRIBE")

COLUMNS: Final = (
    Column("PRINCIPAL", "principal"),
    Column("HOST", "host"),
    Column("RESOURCE", "resource"),
    Column("NAME", "name"),
    Column("PATTERN", "pattern"),
    Column("OPERATION", "operation"),
    Column("PERMISSION", "permission", style=lambda row: "red" if row["permission"] == "DENY" else ""),
)
CHANGED: Final = (*COLUMNS, Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""))


class AclOptions(NamedTuple):
    """What ACLs say, or which ones are meant: what is left out means any."""

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    hosts: Sequence[str] = ()
    operations: Sequence[str] = ()
    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    cluster: bool = False
    prefixed: bool = False
    producer: bool = False
    consumer: bool = False

    @property
    def resources(self) -> list[tuple[str, str]]:
        """(type, name) of each resource that is named."""
        named = (("topic", self.topics), ("group", self.groups), ("transactional-id", self.transactional_ids))
        found = [(kind, name) for kind, names in named for name in names]
        return [*found, ("cluster", CLUSTER_NAME)] if self.cluster else found


def show_list(connection: Connection, options: AclOptions, output: Output) -> int:
    """Print the ACLs that fit."""
    cluster = Cluster(load(connection))
    rows = [acl_row(one) for one in matching_acls(cluster, options)]
    output.rows(rows, COLUMNS, empty="there is no such ACL")
    return 0


def create(connection: Connection, options: AclOptions, output: Output) -> int:
    """Create an ACL for each principal, host, operation and resource."""
    acls = bindings(options)
    failures = Failures()
    output.rows(create_rows(Cluster(load(connection)), acls, failures), CHANGED)
    return failures.exit_code()


def create_rows(cluster: Cluster, acls: Sequence[Any], failures: Failures) -> list[Row]:
    """Create the ACLs: what became of each."""
    rows: list[Row] = []
    for binding, _, error in cluster.results(cluster.admin.create_acls(acls, **cluster.timeout)):
        row = acl_row(binding)
        reported = failures.add(f"{row['resource']} {row['name']}", error) if error else None
        rows.append({**row, "status": "failed" if error else "created", "error": reported})
    return rows


def delete(connection: Connection, options: AclOptions, execute: bool, output: Output) -> int:
    """Delete the ACLs that fit, or show which."""
    if options == AclOptions():
        raise usage("this would delete every ACL", "say which: kpybroker acl delete --help has the options")
    cluster = Cluster(load(connection))
    failures = Failures()
    if not execute:
        found = matching_acls(cluster, options)
        rows = [{**acl_row(one), "status": "would be deleted", "error": None} for one in found]
        output.rows(rows, CHANGED, empty="there is no such ACL")
        note(DRY_RUN)
        return 0
    output.rows(delete_rows(cluster, options, failures), CHANGED, empty="there is no such ACL")
    return failures.exit_code()


def delete_rows(cluster: Cluster, options: AclOptions, failures: Failures) -> list[Row]:
    """Delete the ACLs that fit: those that were."""
    rows: list[Row] = []
    for _, found, error in cluster.results(cluster.admin.delete_acls(filters(options), **cluster.timeout)):
        if error is not None:
            failures.add("acl", error)
        else:
            rows += [{**acl_row(one), "status": "deleted", "error": None} for one in found]
    return rows


def matching_acls(cluster: Cluster, options: AclOptions) -> list[Any]:
    """confluent-kafka's bindings, sorted. Raises CommandError, also where there is no authorizer."""
    found: set[Any] = set()
    for one in filters(options):
        found.update(cluster.result(cluster.admin.describe_acls(one, **cluster.timeout)))
    if not found:
        require_authorizer(cluster.settings)
    return sorted(found)


def require_authorizer(settings: Settings) -> None:
    """Raises CommandError if the broker has none: confluent-kafka 2.16 then reports an empty list."""
    everything = DescribeAclsRequest(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    try:
        with WireCluster(settings) as wire:
            response = wire.any().request(ApiKey.DESCRIBE_ACLS, everything)
    except CommandError as error:
        if error.exit_code == EXIT_USAGE:
            return  # a login that is not ours: the list stays empty
        raise
    check(response.error_code, response.error_message)


def acl_row(acl: Any) -> Row:
    """An ACL, in Kafka's words: one of confluent-kafka's, or one whose kinds are Kafka's numbers."""
    kind = acl.restype
    if isinstance(kind, int):
        resource = KINDS.get(kind, f"type {kind}")
    else:
        resource = NAMES.get(kind, kind.name.lower())
    return {
        "principal": acl.principal,
        "host": acl.host,
        "resource": resource,
        "name": acl.name,
        "pattern": _word(ResourcePatternType, acl.resource_pattern_type),
        "operation": _word(AclOperation, acl.operation),
        "permission": _word(AclPermissionType, acl.permission_type),
    }


def _word(kind: Any, found: Any) -> str:
    """Kafka's name; of a number that has none here, the number."""
    if isinstance(found, int):
        try:
            found = kind(found)
        except ValueError:
            return str(found)
    name: str = found.name
    return name


def bindings(options: AclOptions) -> list[Any]:
    """The ACLs to create. Raises CommandError if principals, resources or operations are missing."""
    people = [(name, AclPermissionType.ALLOW) for name in options.allow]
    people += [(name, AclPermissionType.DENY) for name in options.deny]
    if not people:
        raise usage("no principal is named", "add --allow-principal User:NAME, or --deny-principal")
    if not options.resources:
        raise usage("no resource is named", "add --topic, --group, --transactional-id or --cluster")
    pattern = ResourcePatternType.PREFIXED if options.prefixed else ResourcePatternType.LITERAL
    made = []
    for kind, name in options.resources:
        operations = operations_for(kind, options)
        if not operations:
            raise usage(f"no operation is named for {kind} {name}", "add --operation, or --producer or --consumer")
        literal = ResourcePatternType.LITERAL if kind == "cluster" else pattern
        made += [
            AclBinding(RESOURCES[kind], name, literal, principal(who), host, AclOperation[operation], permission)
            for who, permission in people
            for host in options.hosts or ("*",)
            for operation in operations
        ]
    return made


def operations_for(kind: str, options: AclOptions) -> list[str]:
    """The operations on a resource: those that are named, and those that a producer or a consumer needs."""
    found = dict.fromkeys(_operations(options.operations))
    if options.producer:
        needed = {"topic": PRODUCER, "transactional-id": ("WRITE", "DESCRIBE"), "cluster": ("IDEMPOTENT_WRITE",)}
        found |= dict.fromkeys(needed.get(kind, ()))
    if options.consumer:
        found |= dict.fromkeys({"topic": CONSUMER, "group": ("READ",)}.get(kind, ()))
    return list(found)


def _operations(texts: Iterable[str]) -> list[str]:
    """Names with commas, as Kafka's tools spell them or with underscores."""
    names = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    by_word = {one.name.replace("_", ""): one.name for one in AclOperation if one.name != "UNKNOWN"}
    found = []
    for name in names:
        word = name.upper().replace("_", "").replace("-", "")
        if word not in by_word or word == "ANY":
            known = ", ".join(sorted(one.lower() for one in by_word.values() if one != "ANY"))
            raise usage(f"{name} is no operation", f"name one of these: {known}")
        found.append(by_word[word])
    return found


def principal(text: str) -> str:
    """`User:NAME` for a name alone."""
    return text if ":" in text else f"User:{text}"


def filters(options: AclOptions) -> list[Any]:
    """What finds the ACLs that fit; what is left out fits all."""
    people: list[tuple[str | None, Any]] = [(principal(name), AclPermissionType.ALLOW) for name in options.allow]
    people += [(principal(name), AclPermissionType.DENY) for name in options.deny]
    resources: list[tuple[Any, str | None]] = [(RESOURCES[kind], name) for kind, name in options.resources]
    pattern = ResourcePatternType.PREFIXED if options.prefixed else ResourcePatternType.ANY
    operations = [AclOperation[name] for name in _operations(options.operations)]
    return [
        AclBindingFilter(kind, name, pattern, who, host, operation, permission)
        for kind, name in resources or [(ResourceType.ANY, None)]
        for who, permission in people or [(None, AclPermissionType.ANY)]
        for host in options.hosts or (None,)
        for operation in operations or (AclOperation.ANY,)
    ]
