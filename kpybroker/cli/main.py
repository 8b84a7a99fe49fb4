"""The commands and their options. A command imports what it needs when it runs: `kpybroker --version` stays fast."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, NoReturn

import click

from kpybroker import __version__
from kpybroker.cli.exit_codes import EXIT_CONFIG, EXIT_FAILED, fail, help_text
from kpybroker.cli.health.ping import ping
from kpybroker.cli.lazy import LazyGroup
from kpybroker.cli.log import log
from kpybroker.cli.param_types import Number
from kpybroker.control.log_formats import FORMATS

PROCESSES_MAX = 64
KAFKA_VERSIONS = ("3.9", "4.0", "4.1", "4.2", "4.3")
"""Those of `kpybroker.kafka.version`, which a test compares: the definitions of keys are not imported for the help."""
OF_FULL_OUTPUT = (errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
"""Of a write to a file without a name: standard output. A broker's own files are its own matter."""
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")

_EXIT_CODES = help_text()

_override = click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key, overriding file and environment. May be repeated.",
)
_log_format = click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", help="Kafka's own line format, or JSON lines."
)


@click.group(cls=LazyGroup, epilog=_EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kpybroker", message="%(prog)s %(version)s")
def cli() -> None:
    """A broker that speaks the Kafka protocol, and commands for any Kafka cluster."""


@cli.command(epilog=_EXIT_CODES)
@click.option("--port", type=Number(0, 65535), default=9092, help="0 takes a free one. [default: 9092]")
@click.option("--host", default="127.0.0.1", help="The address to bind; 0.0.0.0 is every one. [default: 127.0.0.1]")
@click.option("--data-dir", type=click.Path(file_okay=False), help="Where messages are kept. [default: see below]")
@click.option(
    "--brokers",
    type=Number(1, 9),
    default=1,
    help="A cluster of so many brokers, at PORT and the ports after it. [default: 1]",
)
@click.option(
    "--processes", is_flag=True, help="With --brokers: each broker is a process, so that all cores of the machine work."
)
@click.option(
    "--control",
    type=Number(0, 65535),
    metavar="PORT",
    help="Open the control channel on loopback, for tests: faults, clock, a look inside. 0 takes a free port.",
)
@click.option(
    "--zookeeper-port",
    type=Number(0, 65535),
    metavar="PORT",
    help="Serve the tree to clients of ZooKeeper too, at PORT of loopback. 0 takes a free port.",
)
@click.option(
    "--console",
    type=Number(0, 65535),
    is_flag=False,
    flag_value="8080",
    metavar="[PORT]",
    help="Show the broker in the browser too, at PORT of loopback. 0 takes a free port. [PORT: 8080]",
)
@click.option(
    "--registry",
    type=Number(0, 65535),
    is_flag=False,
    flag_value="8081",
    metavar="[PORT]",
    help="Start a schema registry too, at PORT of loopback. 0 takes a free port. [PORT: 8081]",
)
@click.option(
    "--kafka-version",
    type=click.Choice(KAFKA_VERSIONS),
    help="Serve what this release of Kafka served: APIs, versions and features; 3.9 in ZooKeeper mode.",
)
@click.option("--tls", is_flag=True, help="Encrypt, with certificates of its own; the settings are printed.")
@click.option(
    "--sasl",
    type=click.Choice(("plain", "scram", "oauthbearer")),
    help="Clients log in; the settings are printed.",
)
@click.option("--acl", is_flag=True, help="Clients log in, and may do what ACLs allow; only admin may do everything.")
@click.option("--exit-with", type=Number(1), metavar="PID", help="Stop when this process ends, such as one that tests.")
@click.option("--ephemeral-dir", type=click.Path(), hidden=True, help="The name of the directory of --ephemeral.")
@click.option("--ephemeral", is_flag=True, help="Keep nothing: a fresh directory, removed at the end.")
@_override
@_log_format
@click.option("--log-level", type=click.Choice(_LEVELS), help="Log everything from this level on.")
def dev(**options: Any) -> None:
    """Start a broker for development; nothing else is needed.

    Data are kept in $XDG_DATA_HOME/kpybroker (usually ~/.local/share/kpybroker) unless --data-dir or --ephemeral says
    otherwise, and those of a cluster in kpybroker-cluster next to it. Once ready it prints `kpybroker ready at
    HOST:PORT` on standard output; the log, and what to try, go to standard error.
    """
    from kpybroker.cli import dev as command
    from kpybroker.cli.options import DevOptions

    raise SystemExit(command.run_dev(DevOptions(**options)))


@cli.command(epilog=_EXIT_CODES)
@click.argument("file", required=False, type=click.Path())
@click.option(
    "--processes",
    type=Number(1, PROCESSES_MAX),
    default=1,
    metavar="N",
    help="Start N brokers as N processes: ids and ports count up from those of FILE, directories get the id. "
    "[default: 1]",
)
@_override
@_log_format
@click.option("--log-level", type=click.Choice(_LEVELS), default="INFO", help="[default: INFO]")
@click.option("--supervised", type=Number(0), hidden=True, help="The broker id of one of --processes.")
def server(
    file: str | None,
    processes: int,
    overrides: tuple[str, ...],
    log_format: str,
    log_level: str,
    supervised: int | None,
) -> None:
    """Start a broker from a Kafka server.properties FILE.

    KAFKA_* environment variables, as in the container images, override the file; --override overrides both. FILE may
    be left out. The log names keys that have no effect here, and unknown keys.
    """
    if supervised is not None:
        from kpybroker.cli.processes.child import run_child

        raise SystemExit(run_child())
    from kpybroker.cli import server as command

    raise SystemExit(command.run_server(file, os.environ, overrides, log_format, log_level, processes))


cli.add_command(log)
cli.add_command(ping)


def main() -> None:
    """The entry point: runs the command, and reports a bad option in two lines as `fail` does."""
    _replace_closed_streams()
    try:
        _run()
    except SystemExit as ended:
        code = _close_stdout() or ended.code
        if "confluent_kafka" in sys.modules:
            _leave(code)
        raise SystemExit(code) from None
    except OSError as error:
        if error.errno not in OF_FULL_OUTPUT or error.filename is not None or sys.argv[1:2] in (["dev"], ["server"]):
            raise
        _close_stdout(error)
        raise SystemExit(EXIT_FAILED) from None
    raise SystemExit(_close_stdout())


def _run() -> None:
    try:
        cli(prog_name="kpybroker", standalone_mode=False)
    except click.ClickException as error:
        _report(error)
    except (KeyboardInterrupt, click.Abort):
        # Before the broker has its own handling of signals.
        raise SystemExit(130) from None


def _leave(code: str | int | None) -> NoReturn:
    """End at once. At the interpreter's end OpenSSL frees its state, and a thread of librdkafka that still closes a
    connection crashes: exit code -11 after a login that was refused, seen once.
    """
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else code is not None)


def _report(error: click.ClickException) -> NoReturn:
    """Two lines, or the help of a group of commands for which none was named. `--log-format json` holds already."""
    if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2; its text is the whole help
        sys.stderr.write(f"{error.format_message()}\n")
        raise SystemExit(EXIT_CONFIG)
    if "--log-format json" in " ".join(sys.argv).replace("=", " "):
        from kpybroker.cli.log_set_up import set_up_logging

        set_up_logging("json", "INFO", quiet=True)
    command = getattr(getattr(error, "ctx", None), "command_path", "kpybroker")
    fail(error.format_message(), f"{command} --help shows what there is", EXIT_CONFIG)


def _replace_closed_streams() -> None:
    """A parent may have closed them (`>&-`); the next file that is opened would take their place."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115


def _close_stdout(failure: OSError | None = None) -> int:
    """Flush now: for a reader that has gone away, the interpreter would print an error at its exit.

    `failure` is that of a write before. Returns the exit code: 0 where all was written, or no one reads it any more.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        failure = failure or error
    if failure is None or failure.errno == errno.EPIPE:
        return 0
    reason = failure.strerror or str(failure)
    sys.stderr.write(f"kpybroker: standard output cannot be written: {reason}\nfix: make room, or write elsewhere\n")
    return EXIT_FAILED
