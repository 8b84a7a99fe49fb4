"""Options that many commands have, and `client_command`, which runs an action and reports how it failed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from kpybroker.client.commands.complete import profile_names
from kpybroker.client.connect.visible import is_text, visible

F = TypeVar("F", bound=Callable[..., Any])

SECONDS_MAX = 3600
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
NAMES = ("GROUP", "TOPIC", "USER", "PROFILE")
"""Of options that name something."""
FORMATS = ("table", "wide", "json", "yaml")
EXTRA = {
    **dict.fromkeys(("confluent_kafka", "rich", "yaml"), "tools"),
    **dict.fromkeys(
        ("starlette", "uvicorn", "jinja2", "jsonpath", "anyio", "httpx", "prometheus_client", "fastavro", "google"),
        "console",
    ),
}
"""Packages of extras, and the name of the extra."""

EXIT_CODES = """\b
Exit codes:
  0  done
  1  something failed: standard error has each item, its cause and a fix
  2  a bad option, value or configuration file
"""


def examples(*lines: str) -> str:
    """The end of a command's `--help`, in click's markup."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines), "", EXIT_CODES])


def stacked(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several decorators as one; the first is the outermost."""
    return lambda function: functools.reduce(lambda made, decorator: decorator(made), reversed(decorators), function)


class AnyBytes(click.types.StringParamType):
    """A text that may be bytes of any kind; Python has those that are no UTF-8 as surrogates."""


class Seconds(click.FloatRange):
    """A time from `least` to `most`; an hour is the longest wait that librdkafka takes."""

    def __init__(self, least: float, most: float = SECONDS_MAX) -> None:
        super().__init__(min=least, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The seconds. Raises `click.BadParameter`, for `nan` too, which no bound excludes."""
        found = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value!r} is no number.", param, ctx)
        return found


def refuse_odd_texts(context: click.Context) -> None:
    """Raises `click.BadParameter` for a value that is no UTF-8 and is neither a path nor `AnyBytes`, and for a name
    that is empty. Of KEY=VALUE only the key is repeated: the value may be a secret.
    """
    for param in context.command.params:
        value = context.params.get(param.name or "")
        is_name = isinstance(param, click.Argument) or param.metavar in NAMES
        for text in value if isinstance(value, tuple) else (value,):
            if text == "" and is_name:
                raise click.BadParameter("it is empty.", context, param)
            if isinstance(text, str) and not is_text(text) and not isinstance(param.type, click.Path | AnyBytes):
                key, equals, _ = text.partition("=")
                raise click.BadParameter(f"{visible(key)}{equals and '=...'} is no UTF-8.", context, param)


output_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="table",
    help="A table, one with more columns, or everything as JSON or YAML.  [default: table]",
)

execute_option = click.option(
    "--execute",
    "-y",
    "--yes",
    "execute",
    is_flag=True,
    help="Do it. Without this, show what would be done and change nothing.",
)

_profile_option = click.option(
    "--profile",
    metavar="PROFILE",
    shell_complete=profile_names,
    help="A profile of `kpybroker profile`, or none. Default: $KPYBROKER_PROFILE, else the one in use.",
)

_profiles_option = click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="PROFILE",
    shell_complete=profile_names,
    help="A profile of `kpybroker profile`, or none. Each of several is a cluster. Default: $KPYBROKER_PROFILE, else "
    "the one in use.",
)

_connection_options = stacked(
    click.option(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="The cluster. Default: $KPYBROKER_BOOTSTRAP_SERVERS, else the profile's, else 127.0.0.1:9092.",
    ),
    click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(),
        help="A Java client's .properties file, as Kafka's tools take it; librdkafka's keys work too.",
    ),
    click.option(
        "-X", "--option", "options", multiple=True, metavar="KEY=VALUE", help="A client's key; may be repeated."
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(0.1),
        default=30.0,
        metavar="SECONDS",
        help="How long to wait for the cluster.  [default: 30]",
    ),
)


def client_command(function: Callable[..., int]) -> Callable[..., None]:
    """Adds the options of a connection, passes them as `connection`, and ends the process with the returned code."""
    return _connection_options(_profile_option(_connected(function)))


def clusters_command(function: Callable[..., int]) -> Callable[..., None]:
    """The same for a command that may have several profiles, which it gets as `profiles`."""

    @functools.wraps(function)
    def of_profiles(*, profiles: tuple[str, ...], **options: Any) -> None:
        one = next(iter(profiles), None) if len(profiles) < 2 else "none"
        _connected(function)(profile=one, profiles=profiles, **options)

    return _connection_options(_profiles_option(of_profiles))


def _connected(function: Callable[..., int]) -> Callable[..., None]:

    @functools.wraps(function)
    def command(
        *,
        bootstrap_server: str | None,
        command_config: str | None,
        options: tuple[str, ...],
        profile: str | None,
        timeout_s: float,
        **rest: Any,
    ) -> None:
        refuse_odd_texts(click.get_current_context())

        def run() -> int:
            from kpybroker.client.connect.profiles import chosen
            from kpybroker.client.connect.settings import Connection

            connection = Connection(bootstrap_server, command_config, options, timeout_s, chosen(profile))
            return function(connection=connection, **rest)

        raise SystemExit(_run(run))

    return command


def reported(function: Callable[..., int]) -> Callable[..., None]:
    """Ends the process with the returned code, or with the two lines of an error: for a command without a cluster."""

    @functools.wraps(function)
    def command(**options: Any) -> None:
        refuse_odd_texts(click.get_current_context())
        raise SystemExit(_run(lambda: function(**options)))

    return command


def _run(action: Callable[[], int]) -> int:
    from kpybroker.client.connect.errors import EXIT_USAGE, CommandError, report

    try:
        return action()
    except CommandError as error:
        report(error.cause, error.fix)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        report(f"this command needs {package}, which is not installed", f"pip install 'kpybroker[{EXTRA[package]}]'")
        return EXIT_USAGE
    except BrokenPipeError:
        _forget_stdout()  # `| head` has what it wanted
        return 0


def _forget_stdout() -> None:
    """The reader of a pipe has gone: what is buffered goes nowhere, without an error at the interpreter's end."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
