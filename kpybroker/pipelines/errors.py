"""Errors of the pipelines, as the user sees them: the cause and the fix."""

from __future__ import annotations

import re


class PipelineError(Exception):
    """An error that a user can fix: `str()` is its two lines. `exit_code` 2 is a wrong argument, 1 anything else.

    `is_unknown` where the cause is Spark's own text, and its messages may say more.
    """

    def __init__(self, cause: str, fix: str, exit_code: int = 1, is_unknown: bool = False) -> None:
        super().__init__(f"kpybroker: {cause}\nfix: {fix}")
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code
        self.is_unknown = is_unknown


NO_CONNECTOR = PipelineError(
    "Spark has no Kafka connector.",
    "Give --jars DIR with spark-sql-kafka-0-10 and its dependencies, or --packages with its Maven coordinates.",
)

JVM_GONE = PipelineError(
    "The JVM of Spark has ended in the middle of the run.",
    "Give it more memory (spark.driver.memory), or see why it was killed; the same checkpoint continues.",
)

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"UnknownTopicOrPartitionException",
        "The topic to read from does not exist.",
        "Create it or write to it first, and check --input and --bootstrap-servers.",
    ),
    (
        r"KAFKA_DATA_LOSS|data may have been lost",
        "Records that this checkpoint needs are gone: expired, deleted, or the topic was created again.",
        "Continue without them with --allow-data-loss, or start over with a new --checkpoint.",
    ),
    (
        r"ArithmeticException: long overflow[\s\S]*KafkaRecordToRow",
        "A record has a timestamp that Spark cannot represent.",
        "Delete the records up to it and continue with --allow-data-loss. A topic's message.timestamp.after.max.ms"
        " refuses such records.",
    ),
    (
        r"(Failed to find data source: kafka|ClassNotFoundException: kafka)",
        NO_CONNECTOR.cause,
        NO_CONNECTOR.fix,
    ),
    (
        r"(unresolved dependency|UNRESOLVED DEPENDENCIES)",
        "Spark could not download its Kafka connector.",
        "Give --jars DIR with spark-sql-kafka-0-10 and its dependencies, or check the connection to Maven Central.",
    ),
    (
        r"(TimeoutException: .*(node assignment|describeTopics|Timed out)|No resolvable bootstrap urls)",
        "The broker does not respond.",
        "Check --bootstrap-servers, and that the broker's advertised.listeners can be reached from here.",
    ),
    (
        r"(SaslAuthenticationException|SASL authentication error|_AUTHENTICATION)",
        "The broker refuses the login.",
        "Correct user and password in --kafka.",
    ),
    (
        r"(TopicAuthorizationException|TOPIC_AUTHORIZATION_FAILED|Not authorized to access topics)",
        "This principal may not use one of the topics.",
        "Allow Read on the topics of --input, and Write on those of --output.",
    ),
    (
        r"(TRANSACTIONAL_ID_AUTHORIZATION_FAILED|GROUP_AUTHORIZATION_FAILED)",
        "This principal may not write the topics of results, which is done in transactions.",
        "Allow Write on the transactional ids, and Read on the groups, that begin with the prefix in --output.",
    ),
    (
        r"INVALID_TRANSACTION_TIMEOUT",
        "The broker allows no transaction of ten minutes, which the topics of results may need.",
        "Raise the broker's transaction.max.timeout.ms to 600000 or more, or write to a directory.",
    ),
    (
        r"(Multiple streaming queries are concurrently using|CONCURRENT_QUERY|CONCURRENT_STREAM_LOG_UPDATE)",
        "Another run uses this checkpoint.",
        "Stop it, or give this run another --checkpoint.",
    ),
    (
        r"(?:Mkdirs failed to create|path is not a directory:) (?:file:)?(\S+?)(?:/_temporary\S*)?(?=\s|$)",
        "{} cannot be made.",
        "Choose another --output or --checkpoint, where this user, and Spark's workers, may write.",
    ),
    (
        r"(\S+) \(Permission denied\)|AccessControlException|Permission denied|Read-only file system",
        "A file of --output or --checkpoint may not be written.",
        "Choose a place where this user, and Spark's workers, may write.",
    ),
    (
        r"No space left on device",
        "The disk is full.",
        "Make space; the next run with this checkpoint continues.",
    ),
    (
        r'(?:No FileSystem for scheme "|Class org\.\S+\.)(\w+)(?:"| not found)',
        "Spark has no file system '{}'.",
        "Correct --output and --checkpoint, or put its jar (for s3a: hadoop-aws) with the connector into --jars.",
    ),
    (
        r"Call From \S+ to (\S+) failed on connection exception",
        "The file system at {} does not respond.",
        "Start it, or correct --output and --checkpoint.",
    ),
    (
        r"UnknownHostException: ([\w.-]+)",
        "The host {} is not known.",
        "Correct --bootstrap-servers, --output or --checkpoint.",
    ),
    (
        r"ConfigException: (.+)",
        "The Kafka client refuses a setting: {}",
        "Correct --kafka.",
    ),
    (
        r"KafkaError\{code=(?:_TIMED_OUT|_TRANSPORT|_ALL_BROKERS_DOWN|_MSG_TIMED_OUT)|were not acknowledged within",
        "The broker did not take the rows of a result in time.",
        "Start it, or see its log; the next run with this checkpoint continues.",
    ),
    (
        r"psycopg\.(?:OperationalError|InterfaceError|errors\.(?:AdminShutdown|CrashShutdown|CannotConnectNow))",
        "PostgreSQL did not take the rows of a result.",
        "Start it, or see its log; the next run with this checkpoint continues.",
    ),
    (
        r"psycopg\.errors\.\w+: (.+)",
        "PostgreSQL refuses the rows of a result: {}.",
        "Correct the table, or the rights of this user; the next run with this checkpoint continues.",
    ),
    (
        r"Could not parse Master URL: '?([^'\n]+)",
        "'{}' is no Spark.",
        "Correct --master: local[2], spark://HOST:7077, yarn, k8s://...",
    ),
    (
        r"All masters are unresponsive",
        "No Spark master responds.",
        "Start it, or correct --master.",
    ),
)
"""(pattern in the text of Spark's error, cause, fix); the first that matches is used, and `{}` is its first group."""

_OWN = re.compile(r"PipelineError: kpybroker: (.+)\nfix: (.+)")
"""One that was raised in a function that Spark has called."""
_OF_JAVA = re.compile(r"(?m)^: [\w.$]+(?:Exception|Error): (.+)$")
_OF_QUERY = re.compile(r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")


def explain(text: str) -> PipelineError:
    """The error to show for the text of a Spark error; that of an unknown one is its first line."""
    if own := _OWN.search(text):
        return PipelineError(own[1], own[2])
    for pattern, cause, fix in _KNOWN:
        if found := re.search(pattern, text):
            return PipelineError(cause.replace("{}", found[1]) if "{}" in cause else cause, fix)
    of_java = _OF_JAVA.search(text)
    lines = [of_java[1] if of_java else _OF_QUERY.sub("", text), *text.splitlines()]
    first = next((line.strip() for line in "\n".join(lines).splitlines() if line.strip()), "Spark failed.")
    return PipelineError(first, "See Spark's own messages above.", is_unknown=True)


def not_started(text: str) -> PipelineError:
    """The error to show where Spark did not start; `text` is all that it wrote."""
    known = explain(text)
    if not known.is_unknown:
        return known
    said = re.search(r"(?m)^(?:Exception in thread \S+ |Error: )(?:[\w.$]+(?:Exception|Error): )?(.+)$", text)
    return PipelineError(f"Spark did not start: {said[1] if said else known.cause}", "Correct --master and --jars.")
