"""Every method there is, by the module that has it; a new method is added here.

A module is imported with the first call of one of its methods: none is needed to start.
"""

from __future__ import annotations

from kpybroker.control.registry import Group, Method, Registry


def all_methods() -> Registry:
    """The registry of all methods."""
    return Registry(GROUPS)


def _client_metrics() -> tuple[Method, ...]:
    from kpybroker.control.methods import client_metrics

    return client_metrics.METHODS


def _disk() -> tuple[Method, ...]:
    from kpybroker.control.methods import disk

    return disk.METHODS


def _faults() -> tuple[Method, ...]:
    from kpybroker.control.methods import faults

    return faults.METHODS


def _general() -> tuple[Method, ...]:
    from kpybroker.control.methods import general

    return general.METHODS


def _look() -> tuple[Method, ...]:
    from kpybroker.control.methods import look

    return look.METHODS


def _records() -> tuple[Method, ...]:
    from kpybroker.control.methods import records

    return records.METHODS


def _requests() -> tuple[Method, ...]:
    from kpybroker.control.methods import requests

    return requests.METHODS


def _seed() -> tuple[Method, ...]:
    from kpybroker.control.methods import seed

    return seed.METHODS


def _share() -> tuple[Method, ...]:
    from kpybroker.control.methods import share

    return share.METHODS


def _snapshots() -> tuple[Method, ...]:
    from kpybroker.control.methods import snapshots

    return snapshots.METHODS


def _time() -> tuple[Method, ...]:
    from kpybroker.control.methods import time

    return time.METHODS


def _topology() -> tuple[Method, ...]:
    from kpybroker.control.methods import topology

    return topology.METHODS


def _upkeep() -> tuple[Method, ...]:
    from kpybroker.control.methods import upkeep

    return upkeep.METHODS


GROUPS = (
    Group(_client_metrics, ("client_metrics", "wait_client_metrics", "subscribe_client_metrics")),
    Group(_disk, ("disk_fault",)),
    Group(
        _faults,
        (
            "add_fault",
            "load_faults",
            "faults",
            "fault",
            "remove_fault",
            "release_fault",
            "wait_fault",
            "next_predicate",
            "answer_predicate",
        ),
    ),
    Group(_general, ("status", "reset", "log", "stop")),
    Group(_look, ("topics", "topic", "groups", "group", "committed", "transactions", "transaction")),
    Group(_records, ("records", "produce")),
    Group(_requests, ("requests", "clear_requests", "wait_requests")),
    Group(_seed, ("create_topic", "delete_topic", "delete_records")),
    Group(_share, ("share_group",)),
    Group(_snapshots, ("snapshot", "restore", "drop_snapshot")),
    Group(_time, ("clock", "advance")),
    Group(
        _topology,
        (
            "broker_down",
            "broker_up",
            "add_broker",
            "remove_broker",
            "pause",
            "resume",
            "expire_session",
            "partition_network",
            "heal_network",
            "move_leader",
            "shuffle_leaders",
            "move_coordinator",
            "shrink_isr",
            "lag_follower",
            "cap_versions",
        ),
    ),
    Group(_upkeep, ("apply_retention", "compact")),
)
