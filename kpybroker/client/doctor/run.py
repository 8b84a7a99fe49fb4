"""The order of the checks: each address, then the cluster behind the first one that works."""

from __future__ import annotations

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.doctor import cluster, ports, reach, state
from kpybroker.client.doctor.findings import SKIPPED, Findings
from kpybroker.client.doctor.ports import Address


def doctor(connection: Connection, write: bool, format_name: str) -> int:
    """Look at everything; 1 if a client cannot work."""
    settings = load(connection)
    findings = Findings(format_name)
    is_done = False
    for address in settings.addresses:
        ips = reach.check_name(*address, findings)
        if not ips or not reach.check_connections(*address, ips, settings, findings):
            continue
        encrypted = reach.check_speech(address, settings, findings)
        if encrypted is not None and not is_done:
            is_done = _check_cluster(address, ips, cluster.Seen(settings, findings, encrypted))
    _check_clients(settings, findings, write)
    return findings.finish()


def _check_cluster(address: Address, ips: list[str], seen: cluster.Seen) -> bool:
    """Whether the cluster could be looked at through this address."""
    settings, findings = seen.settings, seen.findings
    try:
        with ports.open_broker(address, settings, encrypted=seen.encrypted) as broker:
            if not cluster.check_versions(broker, findings) or not cluster.check_login(broker, seen):
                return False
        with ports.open_broker(address, settings, encrypted=seen.encrypted) as broker:
            if not cluster.log_in(broker, seen):
                return False
            found = cluster.metadata(broker, True)
            cluster.check_brokers(found, address, ips, seen)
            state.check_topics(found, findings)
            state.check_factors(found, seen)
            state.check_newest_records(found, seen)
    except CommandError as error:
        findings.failed("cluster", error.cause, error.fix)
        return False
    return True


def _check_clients(settings: Settings, findings: Findings, write: bool) -> None:
    """With a stock client, where it is installed; not when it is clear that it cannot work."""
    if findings.count("failed"):
        if write:
            findings.add("round trip", SKIPPED, "fix the failures above first")
        return
    try:
        from kpybroker.client.doctor import trial
    except ModuleNotFoundError:
        findings.add("client", SKIPPED, "confluent-kafka is not installed: pip install 'kpybroker[tools]'")
        return
    if trial.check_client(settings, findings) and write:
        trial.check_round_trip(settings, findings)
