"""Errors of the commands: a cause and a fix for each, in two lines on standard error, as for every other command.

`CommandError` ends a command. `Failures` collects the items that failed while others succeeded. A cause may hold a text
of librdkafka or of a broker, which may repeat a bad value, so whatever is written here has its secrets replaced: those
that `keep_secret` was given.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from kpybroker.client.connect.visible import visible
from kpybroker.wire.errors import ErrorCode

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
AFTER: Final = re.compile(r" \(after \d+ms in state \w+.*?\)$")
"""librdkafka's bookkeeping at the end of its texts."""
CODES: Final = frozenset(map(int, ErrorCode))

FIXES: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "kpybroker topic list shows the topics; topic describe the partitions of one",
    "TOPIC_ALREADY_EXISTS": "choose another name, or add --if-not-exists",
    "INVALID_REPLICATION_FACTOR": "ask for as many replicas as there are brokers, at most: --replicas",
    "INVALID_PARTITIONS": "ask for more partitions than the topic has now; a topic cannot have fewer",
    "INVALID_CONFIG": "kpybroker config describe --all shows the keys and their present values",
    "NON_EMPTY_GROUP": "stop the members of the group first: kpybroker group describe shows them",
    "GROUP_ID_NOT_FOUND": "kpybroker group list shows the groups",
    "GROUP_SUBSCRIBED_TO_TOPIC": "stop the members that read this topic first: kpybroker group describe shows them",
    "SECURITY_DISABLED": "set authorizer.class.name in the broker's server.properties, and restart it",
    "TOPIC_AUTHORIZATION_FAILED": "grant it: kpybroker acl create; or use the credentials of another user",
    "GROUP_AUTHORIZATION_FAILED": "grant it: kpybroker acl create; or use the credentials of another user",
    "CLUSTER_AUTHORIZATION_FAILED": "grant it: kpybroker acl create; or use the credentials of another user",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "grant it: kpybroker acl create; or use the credentials of another user",
    "SASL_AUTHENTICATION_FAILED": "check sasl.mechanism, the user name and the password in --command-config",
    "_AUTHENTICATION": "check sasl.mechanism, the user name and the password in --command-config",
    "_SSL": "check security.protocol and the certificates; kpybroker doctor says what the port speaks",
    "_UNSUPPORTED_FEATURE": "use a broker that serves this: kpybroker cluster api-versions shows what this one serves",
    "UNSUPPORTED_VERSION": "use a broker that serves this: kpybroker cluster api-versions shows what this one serves",
    "_TIMED_OUT": "kpybroker doctor looks for the cause; --timeout gives the broker more time",
    "_MSG_TIMED_OUT": "kpybroker doctor looks for the cause; --timeout gives the broker more time",
    "REQUEST_TIMED_OUT": "the request may have been done: look before you repeat it; --timeout gives more time",
    "_ALL_BROKERS_DOWN": "start the broker, or name another: -b HOST:PORT; kpybroker doctor looks for the cause",
    "_TRANSPORT": "start the broker, or name another: -b HOST:PORT; kpybroker doctor looks for the cause",
    "_RESOLVE": "check the host name: -b HOST:PORT; kpybroker doctor looks for the cause",
    "_UNKNOWN_PARTITION": "kpybroker topic describe shows the partitions of the topic",
    "_UNKNOWN_TOPIC": "create it: kpybroker topic create",
    "MESSAGE_TOO_LARGE": "raise max.message.bytes of the topic: kpybroker config set topic NAME max.message.bytes=N",
    "INVALID_RECORD": "give the records keys, which a compacted topic needs: -k or -K",
    "NOT_ENOUGH_REPLICAS": "bring the missing replicas back: kpybroker cluster health shows them",
    "INVALID_UPDATE_VERSION": "kpybroker feature list shows the levels that the brokers support",
    "FEATURE_UPDATE_FAILED": "look at the log of the controller, then try again: kpybroker feature list",
    "INVALID_TOPIC_EXCEPTION": "write letters, digits, dots, - and _, 249 at most",
    "INVALID_REPLICA_ASSIGNMENT": "name brokers that are up, each once: kpybroker cluster info shows them",
    "NO_REASSIGNMENT_IN_PROGRESS": "kpybroker partition moves shows what is being moved",
    "REASSIGNMENT_IN_PROGRESS": "wait for the move, or cancel it: kpybroker partition moves shows it",
    "PREFERRED_LEADER_NOT_AVAILABLE": "bring the first replica back and in sync: kpybroker cluster health shows it",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": "bring a replica back: kpybroker cluster health shows them",
    "TRANSACTIONAL_ID_NOT_FOUND": "kpybroker transaction list shows the transactional ids",
}
"""What to do, by the name of Kafka's error, or of librdkafka's own, which begin with an underscore."""

WITHOUT_CONTROLLER: Final = (
    "look into the brokers' logs: without a controller no topic is created and no leader elected"
)
DEFAULT_FIX: Final = "the broker's log may have the cause"


class CommandError(Exception):
    """Ends the command with `exit_code`. `cause` is one sentence; `fix` says what to do.

    `name` is that of Kafka's error, or of librdkafka's own, which begins with an underscore; empty for others.
    """

    def __init__(self, cause: str, fix: str = DEFAULT_FIX, exit_code: int = EXIT_FAILED, *, name: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code
        self.name = name


def usage(cause: str, fix: str) -> CommandError:
    """An option or value that cannot be used: exit code 2."""
    return CommandError(cause, fix, EXIT_USAGE)


def broker_error(code: int, message: str | None = None) -> CommandError | None:
    """A broker's error code, with its message if it sent one; None for 0."""
    if code == 0:
        return None
    if code not in CODES:
        return CommandError(f"the broker reports error {code}" + (f": {message}" if message else ""))
    known = ErrorCode(code)
    text = (message or known.message).rstrip(". ")
    return CommandError(f"{text} ({known.name})", FIXES.get(known.name, DEFAULT_FIX), name=known.name)


def check(code: int, message: str | None = None) -> None:
    """Raises CommandError for an error code that is not 0."""
    error = broker_error(code, message)
    if error is not None:
        raise error


def kafka_error(error: Any) -> CommandError:
    """A `KafkaError`, or a `KafkaException` around one, with the name that Kafka's documentation has."""
    if isinstance(error, CommandError):
        return error
    inner = error.args[0] if isinstance(error, Exception) and error.args else error
    if not hasattr(inner, "name"):
        return CommandError(str(error))
    text = AFTER.sub("", inner.str() or "").removeprefix("Broker: ").rstrip(". ")
    found = broker_error(inner.code(), text) if inner.code() in CODES else None
    name = inner.name()
    return found or CommandError(f"{text} ({name.lstrip('_')})", FIXES.get(name, DEFAULT_FIX), name=name)


_secrets: set[str] = set()


def keep_secret(values: Iterable[str]) -> None:
    """From now on, these are written as `***`."""
    _secrets.update(filter(None, values))


def hide(text: str) -> str:
    """`text` with every secret replaced by `***`, the longest first."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def report(cause: str, fix: str | None = None) -> None:
    """Write the one or two lines to standard error."""
    note(f"kpybroker: {' '.join(cause.split())}")
    if fix:
        note(f"fix: {' '.join(fix.split())}")


def note(text: str) -> None:
    """A line on standard error; by itself it is no error, but a summary or a remark."""
    sys.stderr.write(f"{visible(hide(text))}\n")
    sys.stderr.flush()


class Failures:
    """The items that failed, reported when they do; the fix of several equal failures is printed once, at the end.

    With `silent` nothing is reported.
    """

    def __init__(self, *, silent: bool = False) -> None:
        self.count = 0
        self._is_silent = silent
        self._fixes: dict[str, None] = {}

    def add(self, item: str, error: CommandError) -> dict[str, str]:
        """Report one, and return it as a row's `error`."""
        self.count += 1
        if not self._is_silent:
            report(f"{item}: {error.cause}")
            self._fixes.setdefault(error.fix)
        return {"cause": error.cause, "fix": error.fix}

    def exit_code(self) -> int:
        """1 if any item failed; prints the fixes."""
        for fix in self._fixes:
            note(f"fix: {fix}")
        self._fixes.clear()
        return EXIT_FAILED if self.count else 0
