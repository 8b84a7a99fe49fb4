"""Checks of a cluster through one broker: versions, login, advertised addresses, topics, factors, clock."""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

from kpybroker.cli.client.connect import sasl
from kpybroker.cli.client.connect.errors import CommandError
from kpybroker.cli.client.connect.settings import Settings
from kpybroker.cli.client.connect.versions import is_controller_only, looks_like
from kpybroker.cli.client.connect.wire import WireBroker, WireError
from kpybroker.cli.client.doctor import ports
from kpybroker.cli.client.doctor.findings import NOTE, SKIPPED, Findings, counted
from kpybroker.cli.client.doctor.ports import Address
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest

BROKER: Final = 4
MAX_TIMESTAMP: Final = -3
PARTITIONS_MAX: Final = 2000
"""Partitions that are asked for their newest record."""
AHEAD_MS: Final = 5_000

FACTORS: Final = (
    ("offsets.topic.replication.factor", "__consumer_offsets", "groups cannot work"),
    ("transaction.state.log.replication.factor", "__transaction_state", "transactions cannot work"),
)


class Seen(NamedTuple):
    """What the checks have in common."""

    settings: Settings
    findings: Findings
    encrypted: bool


def check_versions(broker: WireBroker, findings: Findings) -> bool:
    """Whether it is a broker that clients can use."""
    name = f"{broker.address[0]}:{broker.address[1]}"
    if is_controller_only(broker.versions):
        fix = "use a listener that is not in controller.listener.names"
        findings.failed("versions", f"{name} is the listener of a KRaft controller, which serves no clients", fix)
        return False
    findings.ok("versions", f"{name} looks like Kafka {looks_like(broker.versions)} ({len(broker.versions)} APIs)")
    return True


def check_login(broker: WireBroker, seen: Seen) -> bool:
    """Whether requests are accepted: without a login, or with the configured one."""
    settings, findings = seen.settings, seen.findings
    wants_sasl = settings.protocol.startswith("SASL")
    mechanisms = _mechanisms(broker, sasl.mechanism(settings.properties) if wants_sasl else "NONE")
    if mechanisms is None:
        if wants_sasl:
            protocol = settings.protocol.removeprefix("SASL_")
            fix = f"set security.protocol={protocol}, or use the port of a listener with SASL"
            findings.failed("login", "the listener has no login, and the client has one", fix)
            return False
        return True
    offered = ", ".join(mechanisms) or "none"
    if not wants_sasl:
        protocol = "SASL_SSL" if seen.encrypted else "SASL_PLAINTEXT"
        fix = f"set security.protocol={protocol}, sasl.mechanism and sasl.jaas.config in --command-config"
        findings.failed("login", f"the listener wants a login ({offered}), and the client has none", fix)
        return False
    if sasl.mechanism(settings.properties) not in mechanisms:
        mine = sasl.mechanism(settings.properties)
        findings.failed(
            "login", f"the listener offers {offered}, and the client has {mine}", "set sasl.mechanism to one of these"
        )
        return False
    return True


def _mechanisms(broker: WireBroker, mechanism: str) -> list[str] | None:
    """What the listener offers; None if it has no SASL. The connection is used up."""
    if ApiKey.SASL_HANDSHAKE not in broker.versions:
        return None
    try:
        response = broker.request(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))
    except WireError:
        return None  # some brokers close a listener without SASL here
    return None if response.error_code == ErrorCode.ILLEGAL_SASL_STATE else list(response.mechanisms)


def log_in(broker: WireBroker, seen: Seen) -> bool:
    """Log in as configured, where the mechanism is one of ours."""
    if not seen.settings.protocol.startswith("SASL"):
        return True
    try:
        broker.login(seen.settings.properties)
    except CommandError as error:
        if error.exit_code == 1:
            fix = "check the user name and the password in --command-config"
            seen.findings.failed("login", error.cause, fix)
        else:
            seen.findings.add("login", SKIPPED, error.cause)
        return False
    seen.findings.ok("login", f"{sasl.mechanism(seen.settings.properties)} is accepted")
    return True


# --- what the brokers advertise


def metadata(broker: WireBroker, topics: bool) -> Any:
    """Metadata of no topic, or of all."""
    return broker.request(ApiKey.METADATA, MetadataRequest(topics=None if topics else []))


def check_brokers(found: Any, given: Address, ips: list[str], seen: Seen) -> None:
    """The controller, and each advertised address."""
    findings = seen.findings
    brokers = sorted(found.brokers, key=lambda one: one.node_id)
    if not brokers:
        findings.failed("brokers", "the cluster names no broker", "wait until the brokers have registered")
        return
    ids = ", ".join(str(one.node_id) for one in brokers)
    if found.controller_id < 0:
        fix = "look into the brokers' logs: without a controller no topic is created and no leader elected"
        findings.failed("brokers", f"cluster {found.cluster_id} has no controller", fix)
    else:
        findings.ok("brokers", f"cluster {found.cluster_id}: {ids}; the controller is {found.controller_id}")
    for one in brokers:
        _check_advertised(one, found.cluster_id, given, ips, seen)
    if given not in [(one.host, one.port) for one in brokers]:
        others = ", ".join(f"{one.host}:{one.port}" for one in brokers)
        findings.add("advertised", NOTE, f"clients begin at {given[0]}:{given[1]} and go on to {others}")


def _check_advertised(one: Any, cluster_id: str | None, given: Address, ips: list[str], seen: Seen) -> None:
    """One broker: every client connects to the address that the broker advertises, whatever it began with."""
    findings, name = seen.findings, f"broker {one.node_id} advertises {one.host}:{one.port}"
    fix = f"set advertised.listeners of broker {one.node_id} to an address that clients reach, and restart it"
    if ports.is_unspecified(one.host):
        findings.failed("advertised", f"{name}, which no client can connect to", fix)
        return
    is_far = not any(ports.is_loopback(ip) for ip in ips)
    if ports.is_loopback(one.host) and is_far:
        findings.failed("advertised", f"{name}: for a client on another machine, that is the client's own", fix)
        return
    try:
        ports.resolve(one.host, one.port)
    except OSError:
        findings.failed("advertised", f"{name}, a name that has no address here", f"{fix}; or add the name to DNS")
        return
    try:
        with ports.open_broker((one.host, one.port), seen.settings, encrypted=seen.encrypted) as broker:
            if seen.settings.protocol.startswith("SASL"):
                broker.login(seen.settings.properties)
            other = metadata(broker, False).cluster_id
    except CommandError as error:
        findings.failed("advertised", f"{name}: {error.cause}", fix)
        return
    if other != cluster_id:
        findings.failed("advertised", f"{name}, where a broker of another cluster ({other}) answers", fix)
    elif (one.host, one.port) != given:
        findings.ok("advertised", f"{name}, which answers")


# --- what the cluster says of itself


def check_topics(found: Any, findings: Findings) -> None:
    """Leaders and replicas of all partitions."""
    partitions = [(topic.name, partition) for topic in found.topics for partition in topic.partitions]
    leaderless = [f"{name}-{p.partition_index}" for name, p in partitions if p.leader_id < 0]
    behind = [f"{name}-{p.partition_index}" for name, p in partitions if len(p.isr_nodes) < len(p.replica_nodes)]
    if leaderless:
        fix = "bring the brokers of their replicas back: kpybroker cluster health shows them"
        findings.failed("topics", f"{counted(len(leaderless), 'partition')} without a leader: {_some(leaderless)}", fix)
    if behind:
        fix = "bring the missing replicas back: kpybroker cluster health shows them"
        findings.warning(
            "topics", f"{counted(len(behind), 'partition')} with replicas out of sync: {_some(behind)}", fix
        )
    if not leaderless and not behind:
        findings.ok(
            "topics",
            f"{counted(len(found.topics), 'topic')}, {counted(len(partitions), 'partition')}, all replicas in sync",
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")


def check_factors(broker: WireBroker, found: Any, findings: Findings) -> None:
    """Whether the topics of offsets and transactions can be created; they are when they are first needed."""
    existing = {topic.name for topic in found.topics}
    missing = [row for row in FACTORS if row[1] not in existing]
    if not missing or not found.brokers:
        return
    try:
        values = _broker_configs(broker, found.brokers[0].node_id, [row[0] for row in missing])
    except CommandError as error:
        findings.add("factors", SKIPPED, f"the broker's settings cannot be read: {error.cause}")
        return
    count = len(found.brokers)
    for key, _, effect in missing:
        factor = values.get(key)
        if factor is not None and factor.isdigit() and int(factor) > count:
            fix = f"set {key}={count} in server.properties and restart, or run {factor} brokers"
            text = f"{effect}: {key} is {factor}, and there is {counted(count, 'broker')}"
            findings.failed("factors", text, fix)


def _broker_configs(broker: WireBroker, node_id: int, keys: list[str]) -> dict[str, str | None]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(node_id), configuration_keys=keys
    )
    (result,) = broker.request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource])).results
    if result.error_code:
        raise CommandError(result.error_message or ErrorCode(result.error_code).name)
    return {entry.name: entry.value for entry in result.configs}


def check_newest_records(broker: WireBroker, found: Any, findings: Findings) -> None:
    """Records from the future: a producer's clock or a broker's is ahead, or this machine's is behind.

    Only partitions whose leader is this broker are asked.
    """
    served = broker.versions.get(ApiKey.LIST_OFFSETS)
    if served is None or served[1] < 7:
        return
    node = next((one.node_id for one in found.brokers if (one.host, one.port) == broker.address), None)
    topics = _led_by(found, node)
    if not topics:
        return
    now_ms = time.time_ns() // 1_000_000
    try:
        response = broker.request(ApiKey.LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=topics))
    except CommandError as error:
        findings.add("clock", SKIPPED, f"the newest records cannot be asked for: {error.cause}")
        return
    times = [(p.timestamp, f"{t.name}-{p.partition_index}") for t in response.topics for p in t.partitions]
    newest, where = max(times, default=(-1, ""))
    if newest > now_ms + AHEAD_MS:
        text = f"the newest record of {where} is {(newest - now_ms) / 1000:.0f} s ahead of this machine's clock"
        fix = (
            "synchronize the clocks (NTP) of this machine, the brokers and the producers; --write measures the brokers"
        )
        findings.warning("clock", text, fix)
    elif newest >= 0:
        findings.ok("clock", "no record is from the future")


def _led_by(found: Any, node_id: int | None) -> list[Any]:
    topics, count = [], 0
    for topic in found.topics:
        numbers = [p.partition_index for p in topic.partitions if node_id is not None and p.leader_id == node_id]
        count += len(numbers)
        if numbers and count <= PARTITIONS_MAX:
            partitions = [
                ListOffsetsRequest.ListOffsetsPartition(partition_index=number, timestamp=MAX_TIMESTAMP)
                for number in numbers
            ]
            topics.append(ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=partitions))
    return topics
