"""Errors of the pipelines, as the user sees them: the cause and the fix."""

from __future__ import annotations

import re


class PipelineError(Exception):
    """An error that a user can fix: `str()` is its two lines. `exit_code` 2 is a wrong argument, 1 anything else."""

    def __init__(self, cause: str, fix: str, exit_code: int = 1) -> None:
        super().__init__(f"kpybroker: {cause}\nfix: {fix}")
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code


NO_CONNECTOR = PipelineError(
    "Spark has no Kafka connector.",
    "Give --jars DIR with spark-sql-kafka-0-10 and its dependencies, or --packages with its Maven coordinates.",
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
        r"The schema registry does not respond",
        "The schema registry does not respond, or refuses.",
        "Start it, or correct --schema-registry; the next run continues from the checkpoint.",
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
)
"""(pattern in the text of Spark's error, cause, fix); the first that matches is used."""


def explain(text: str) -> PipelineError:
    """The error to show for the text of a Spark error; the cause of an unknown one is its first line."""
    for pattern, cause, fix in _KNOWN:
        if re.search(pattern, text):
            return PipelineError(cause, fix)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "Spark failed.")
    return PipelineError(first, "See Spark's own messages above.")
