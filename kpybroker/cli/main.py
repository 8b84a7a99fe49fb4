"""The command line. Every command imports what it needs when it runs: `kpybroker --version` opens no socket module.

Exit codes stand in `kpybroker.cli.run` and are printed by `--help`.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from kpybroker import __version__
from kpybroker.cli.log import log
from kpybroker.cli.logs import FORMATS

_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")

_EXIT_CODES = """\b
Exit codes:
  0  stopped in order
  1  an unexpected failure: the log has the details
  2  a bad option, key or value, or an unreadable file
  3  a log directory cannot be used, or the last one failed
  4  a log directory is locked by another broker
  5  an address cannot be bound: the port is taken, or the host is not here
  6  ZooKeeper is unreachable or refuses, or the embedded tree cannot be opened, read or written
  7  the log directories belong to another cluster or another broker
  143, 130  ended at once by a second SIGTERM or SIGINT
"""

_override = click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key, whatever file and environment say. May be repeated.",
)
_log_format = click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", help="Kafka's own line format, or JSON lines."
)


@click.group(epilog=_EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kpybroker", message="%(prog)s %(version)s")
def cli() -> None:
    """A broker that speaks the Kafka protocol."""


@cli.command(epilog=_EXIT_CODES)
@click.option("--port", type=click.IntRange(0, 65535), default=9092, help="0 takes a free one. [default: 9092]")
@click.option("--host", default="127.0.0.1", help="The address to bind; 0.0.0.0 is every one. [default: 127.0.0.1]")
@click.option("--data-dir", type=click.Path(file_okay=False), help="Where messages are kept. [default: see below]")
@click.option(
    "--brokers",
    type=click.IntRange(1, 9),
    default=1,
    help="A cluster of so many, at PORT and those above. [default: 1]",
)
@click.option("--ephemeral", is_flag=True, help="Keep nothing: a fresh directory, removed at the end.")
@_override
@_log_format
@click.option("--log-level", type=click.Choice(_LEVELS), help="Log everything from this level on.")
def dev(
    port: int,
    host: str,
    data_dir: str | None,
    brokers: int,
    ephemeral: bool,
    overrides: tuple[str, ...],
    log_format: str,
    log_level: str | None,
) -> None:
    """Start a broker for development; nothing else is needed.

    Data are kept in $XDG_DATA_HOME/kpybroker (usually ~/.local/share/kpybroker) unless --data-dir or --ephemeral says
    otherwise, those of a cluster beside it. Once ready it prints `kpybroker ready at HOST:PORT` and what to try.
    """
    from kpybroker.cli import dev as command

    _leave(command.run_dev(port, host, data_dir, ephemeral, overrides, log_format, log_level, brokers))


@cli.command(epilog=_EXIT_CODES)
@click.argument("file", required=False, type=click.Path())
@_override
@_log_format
@click.option("--log-level", type=click.Choice(_LEVELS), default="INFO", help="[default: INFO]")
def server(file: str | None, overrides: tuple[str, ...], log_format: str, log_level: str) -> None:
    """Start a broker from a Kafka server.properties FILE.

    KAFKA_* environment variables, as the container images take them, stand above the file; --override above both.
    Without FILE, only those two count. Keys that have no effect here, and keys that are none, are named in the log.
    """
    from kpybroker.cli import server as command

    _leave(command.run_server(file, os.environ, overrides, log_format, log_level))


cli.add_command(log)


def _leave(code: int) -> None:
    raise SystemExit(code)


def main() -> None:
    try:
        cli(prog_name="kpybroker", standalone_mode=False)
    except click.ClickException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "kpybroker")
        _two_lines(error.format_message(), f"{command} --help shows what there is")
    except (KeyboardInterrupt, click.Abort):
        # Before the broker's own handling of signals is in place.
        raise SystemExit(130) from None
    finally:
        _close_stdout()


def _two_lines(cause: str, fix: str) -> NoReturn:
    from kpybroker.cli.run import EXIT_CONFIG, fail

    fail(cause, fix, EXIT_CONFIG)


def _close_stdout() -> None:
    """Flush now: a reader that is gone would otherwise become a complaint at interpreter exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
