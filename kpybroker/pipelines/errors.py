"""What a person gets to read when a pipeline cannot go on: the cause, and the fix."""

from __future__ import annotations

import re


class PipelineError(Exception):
    """`cause` in a line; `fix` says what to do about it. `exit_code` 2 is a wrong argument, 1 anything else."""

    def __init__(self, cause: str, fix: str, exit_code: int = 1) -> None:
        super().__init__(f"{cause}\n  {fix}")
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code


# what Spark's error text holds -> cause and fix; the first that is found counts
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"UnknownTopicOrPartitionException",
        "The topic to read from does not exist.",
        "Create it or write to it first, and check --topic and --bootstrap-servers.",
    ),
    (
        r"KAFKA_DATA_LOSS|data may have been lost",
        "Records that this checkpoint counts on are gone: expired, deleted, or the topic was made anew.",
        "Go on without them with --allow-data-loss, or start over with a new --checkpoint.",
    ),
    (
        r"(Failed to find data source: kafka|ClassNotFoundException: kafka)",
        "Spark has no Kafka connector.",
        "Give --jars DIR with spark-sql-kafka-0-10 and what it needs, or --packages with its Maven coordinates.",
    ),
    (
        r"(unresolved dependency|UNRESOLVED DEPENDENCIES)",
        "Spark could not download its Kafka connector.",
        "Give --jars DIR with spark-sql-kafka-0-10 and what it needs, or check the way to Maven Central.",
    ),
    (
        r"(TimeoutException: .*(node assignment|describeTopics|Timed out)|No resolvable bootstrap urls)",
        "The broker does not answer.",
        "Check --bootstrap-servers, and that the broker's advertised.listeners can be reached from here.",
    ),
    (
        r"(Multiple streaming queries are concurrently using|CONCURRENT_QUERY|CONCURRENT_STREAM_LOG_UPDATE)",
        "Another run uses this checkpoint.",
        "Stop it, or give this run a --checkpoint of its own.",
    ),
)


def explain(text: str) -> PipelineError:
    """The error to show for what Spark said; an unknown one keeps Spark's own first line."""
    for pattern, cause, fix in _KNOWN:
        if re.search(pattern, text):
            return PipelineError(cause, fix)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "Spark failed.")
    return PipelineError(first, "Spark's own account of it stands above.")
