"""`kpybroker completion`, and the names that shells complete: topics and groups, for which it asks the cluster.

That takes a second at most, and must never print an error, so whatever fails completes nothing.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, Final

import click

SECONDS_MAX: Final = 1.0
SHELLS: Final = ("bash", "zsh", "fish")


def topic_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topics that begin with what is typed."""
    return _complete(ctx, incomplete, lambda cluster: cluster.metadata().topics)


def profile_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Profiles that begin with what is typed."""
    with contextlib.suppress(Exception):
        from kpybroker.client.connect.profiles import names

        return [name for name in names() if name.startswith(incomplete)]
    return []


def group_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Groups that begin with what is typed."""

    def names(cluster: Any) -> list[str]:
        return [group.group_id for group in cluster.result(cluster.admin.list_consumer_groups()).valid]

    return _complete(ctx, incomplete, names)


def _complete(ctx: click.Context, incomplete: str, names: Any) -> list[str]:
    params = ctx.params
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        from kpybroker.client.connect.admin import Cluster
        from kpybroker.client.connect.profiles import chosen
        from kpybroker.client.connect.settings import Connection, load

        connection = Connection(
            params.get("bootstrap_server"),
            params.get("command_config"),
            params.get("options") or (),
            SECONDS_MAX,
            chosen(params.get("profile")),
        )
        return sorted(name for name in names(Cluster(load(connection))) if name.startswith(incomplete))
    return []


@click.command(
    epilog="\b\nExamples:\n"
    "  source <(kpybroker completion bash)\n"
    "  kpybroker completion zsh > ~/.zfunc/_kpybroker\n"
    "  kpybroker completion fish > ~/.config/fish/completions/kpybroker.fish\n"
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Names of topics and groups are completed from the cluster that -b, or KPYBROKER_BOOTSTRAP_SERVERS, names.
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None, shell
    click.echo(made(ctx.find_root().command, {}, "kpybroker", "_KPYBROKER_COMPLETE").source())
