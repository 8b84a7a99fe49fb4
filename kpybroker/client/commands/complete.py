"""Completion of names that the cluster knows: topics, groups. It asks the cluster, for a second at most.

Completion must never print an error, so whatever fails completes nothing.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, Final

import click

SECONDS_MAX: Final = 1.0


def topic_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics that begin with what is typed."""
    return _complete(ctx, incomplete, lambda cluster: cluster.metadata().topics)


def group_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Groups that begin with what is typed."""

    def names(cluster: Any) -> list[str]:
        return [group.group_id for group in cluster.result(cluster.admin.list_consumer_groups()).valid]

    return _complete(ctx, incomplete, names)


def _complete(ctx: click.Context, incomplete: str, names: Any) -> list[str]:
    params = ctx.params
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        from kpybroker.client.connect.admin import Cluster
        from kpybroker.client.connect.settings import Connection, load

        connection = Connection(
            params.get("bootstrap_server"), params.get("command_config"), params.get("options") or (), SECONDS_MAX
        )
        return sorted(name for name in names(Cluster(load(connection))) if name.startswith(incomplete))
    return []
