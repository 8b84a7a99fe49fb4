"""`kpybroker completion`: the script that makes a shell complete commands, options, topics and groups."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


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
