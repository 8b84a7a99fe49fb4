"""`user list`, `set` and `delete`: SCRAM credentials. A password is read, and never an argument, shown or logged."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kpybroker.client.actions.topic_changes import DRY_RUN
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import (
    CommandError,
    Failures,
    broker_error,
    check,
    keep_secret,
    note,
    usage,
)
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

MECHANISMS: Final = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
NAMES: Final = {mechanism: name for name, mechanism in MECHANISMS.items()}
NAMES_BY_NUMBER: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""As the protocol numbers them."""
ITERATIONS_MIN: Final = 4096

COLUMNS: Final = (Column("USER", "user"), Column("MECHANISM", "mechanism"), Column("ITERATIONS", "iterations"))
CHANGED: Final = (*COLUMNS[:2], Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""))
FIX: Final = "kpybroker user list shows the users and their mechanisms"


def show_list(connection: Connection, users: Sequence[str], output: Output) -> int:
    """Print who has which credentials."""
    failures = Failures()
    rows = credentials(Cluster(load(connection)), users, failures)
    output.rows(rows, COLUMNS, empty="" if failures.count else "there are no users")
    return failures.exit_code()


def credentials(cluster: Cluster, users: Sequence[str], failures: Failures) -> list[Row]:
    """The SCRAM mechanisms of these users, or of all. Raises CommandError.

    Not by confluent-kafka: librdkafka 2.x corrupts its memory where the whole request is refused, and ends the process.
    """
    name = DescribeUserScramCredentialsRequest.UserName
    wanted = [name(name=user) for user in dict.fromkeys(users)] if users else None
    with cluster.wire() as wire:
        request = DescribeUserScramCredentialsRequest(users=wanted)
        response = wire.any().request(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, request)
    check(response.error_code, response.error_message)
    rows: list[Row] = []
    for found in sorted(response.results, key=lambda one: one.user):
        error = broker_error(found.error_code, found.error_message)
        if error is not None:
            fix = FIX if "RESOURCE" in error.cause else error.fix
            failures.add(f"user {found.user}", CommandError(error.cause, fix))
            continue
        for one in sorted(found.credential_infos, key=lambda one: one.mechanism):
            mechanism = NAMES_BY_NUMBER.get(one.mechanism, f"mechanism {one.mechanism}")
            rows.append({"user": found.user, "mechanism": mechanism, "iterations": one.iterations})
    return rows


def read_password(file: str | None) -> str:
    """From a file, from standard input if it is no terminal, else by asking twice. Raises CommandError."""
    if file is not None:
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise usage(f"{file} cannot be read: {error}", "name a file that holds the password alone") from None
    elif not sys.stdin.isatty():
        text = sys.stdin.read()
    else:
        text = getpass.getpass("password: ")
        if getpass.getpass("again: ") != text:
            raise usage("the two passwords differ", "type the same twice")
    password = text.removesuffix("\n").removesuffix("\r")
    if not password:
        raise usage("the password is empty", "give one: on standard input, in --password-file FILE, or at the prompt")
    keep_secret([password])
    return password


def set_credentials(
    connection: Connection,
    user: str,
    mechanisms: Sequence[str],
    iterations: int,
    password_file: str | None,
    output: Output,
) -> int:
    """Create or replace a user's credentials."""
    settings = load(connection)
    password = read_password(password_file).encode()
    wanted = upsertions(user, mechanisms, iterations, password)
    failures = Failures()
    output.rows(alter_rows(Cluster(settings), wanted, "set", failures), CHANGED)
    return failures.exit_code()


def delete(connection: Connection, user: str, mechanisms: Sequence[str], execute: bool, output: Output) -> int:
    """Delete a user's credentials: all, or those of some mechanisms."""
    cluster = Cluster(load(connection))
    failures = Failures()
    existing = credentials(cluster, [user], failures)
    if failures.count:
        return failures.exit_code()
    chosen = [row for row in existing if not mechanisms or row["mechanism"] in mechanisms]
    if not chosen:
        raise CommandError(f"user {user} has no credentials with {' or '.join(mechanisms)}", FIX)
    if not execute:
        output.rows([{**row, "status": "would be deleted", "error": None} for row in chosen], CHANGED)
        note(DRY_RUN)
        return 0
    output.rows(delete_rows(cluster, chosen, failures), CHANGED)
    return failures.exit_code()


def upsertions(user: str, mechanisms: Sequence[str], iterations: int, password: bytes) -> list[Any]:
    """What sets a user's credentials."""
    return [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(MECHANISMS[name], iterations), password)
        for name in dict.fromkeys(mechanisms)
    ]


def delete_rows(cluster: Cluster, rows: Sequence[Row], failures: Failures) -> list[Row]:
    """Delete the credentials that the rows name: what became of each."""
    wanted = [UserScramCredentialDeletion(row["user"], MECHANISMS[row["mechanism"]]) for row in rows]
    return alter_rows(cluster, wanted, "deleted", failures)


def alter_rows(cluster: Cluster, wanted: Sequence[Any], done: str, failures: Failures) -> list[Row]:
    """What became of changes of one user, of which the broker makes all or none."""
    futures = cluster.admin.alter_user_scram_credentials(list(wanted), **cluster.timeout)
    ((user, _, error),) = cluster.results(futures)
    reported = failures.add(f"user {user}", error) if error else None
    mechanisms = [one.mechanism if hasattr(one, "mechanism") else one.scram_credential_info.mechanism for one in wanted]
    status = "failed" if error else done
    return [{"user": user, "mechanism": NAMES[one], "status": status, "error": reported} for one in mechanisms]
