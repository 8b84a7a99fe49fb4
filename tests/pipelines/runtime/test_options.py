"""The command line of the job, and the errors that users see."""

from __future__ import annotations

import socket

import pytest

from kpybroker.pipelines.activity.pipeline import ACTIVITY, ActivityOptions
from kpybroker.pipelines.errors import PipelineError, explain, not_started
from kpybroker.pipelines.runtime.arguments import seconds
from kpybroker.pipelines.runtime.options import Options, Run, check_reachable, parse, result_topic

NEEDED = ["--bootstrap-servers", "127.0.0.1:9092", "--input", "lines", "--output", "topics:out", "--format", "access"]
STREAM = [*NEEDED, "--checkpoint", "/c"]


def test_an_option_that_is_not_given_has_the_default_of_the_help() -> None:
    options = parse(ACTIVITY, STREAM)
    own = ActivityOptions("access")
    assert options == Options("127.0.0.1:9092", ("lines",), own, checkpoint="/c", output=("topics:out",))
    assert (options.prefixes, options.directories) == (["out"], [])
    assert result_topic("out", "page_counts") == "out-page-counts"


def test_every_option_can_be_given() -> None:
    more = ["--run", "follow", "--window", "1 hour", "--slide", "5 minutes", "--watermark", "90 seconds"]
    more += ["--session-gap", "1 day", "--top", "3", "--timezone", "Europe/Oslo", "--max-offsets", "10"]
    more += ["--kafka", "security.protocol=SSL", "--kafka", "ssl.endpoint.identification.algorithm="]
    more += ["--allow-data-loss", "--output", "/data/site/", "--output", "s3a://bucket/site"]
    options = parse(ACTIVITY, [*STREAM, *more])
    own = options.own
    assert (options.run, own.window, own.slide, own.top) == (Run.FOLLOW, "1 hour", "5 minutes", 3)
    assert options.kafka == {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    assert options.allow_data_loss
    assert options.directories == ["/data/site", "s3a://bucket/site"]


def test_fields_and_topics_may_be_several() -> None:
    more = ["--format", "activity", "--field", "page=url", "--input", "one, two,one"]
    options = parse(ACTIVITY, [*STREAM, *more])
    assert options.own.fields == {"page": "url"}
    assert options.input == ("one", "two")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (NEEDED[:6], "arguments are required: --format"),
        ([*NEEDED[:4], *NEEDED[6:]], "arguments are required: --output"),
        (NEEDED, "needs a place for its position"),
        ([*STREAM, "--run", "whole"], "keeps no position"),
        ([*NEEDED, "--run", "whole", "--starting-offsets", "latest"], "nothing to read"),
        ([*STREAM, "--run", "sometimes"], "invalid choice: 'sometimes'"),
        ([*STREAM, "--format", "csv"], "invalid choice: 'csv'"),
        ([*STREAM, "--bootstrap-servers", "localhost"], "'localhost' is not HOST:PORT"),
        ([*STREAM, "--bootstrap-servers", "a:1,b:70000"], "'b:70000' is not HOST:PORT"),
        ([*STREAM, "--input", "æ"], "not a topic name"),
        ([*STREAM, "--output", "topics:æ"], "not a topic name"),
        ([*STREAM, "--output", ""], "is no output"),
        ([*STREAM, "--window", "10m"], "'10m' is not a duration: write '90 seconds'"),
        ([*STREAM, "--watermark", "0 minutes"], "not a duration"),
        ([*STREAM, "--window", "5 minutes", "--slide", "10 minutes"], "--slide is longer than --window"),
        ([*STREAM, "--top", "-1"], "'-1' is not a number above 0"),
        ([*STREAM, "--timezone", "Oslo"], "'Oslo' is not a time zone"),
        ([*STREAM, "--kafka", "acks"], "'acks' is not KEY=VALUE"),
        ([*STREAM, "--field", "page=url"], "--field is for --format activity"),
        ([*STREAM, "--format", "activity", "--field", "url=page"], "An event has no 'url'"),
        ([*STREAM, "--jars", "a", "--packages", "b"], "Both --jars and --packages"),
        ([*STREAM, "--input", "out-sessions"], "to the topic that is read"),
        ([*STREAM, "--windw", "1 hour"], "Unrecognized arguments: --windw"),
    ],
)
def test_a_wrong_argument_is_reported_with_its_fix(arguments: list[str], cause: str) -> None:
    with pytest.raises(PipelineError) as raised:
        parse(ACTIVITY, arguments)
    assert cause in raised.value.cause
    assert raised.value.fix
    assert raised.value.exit_code == 2


def test_durations_in_seconds() -> None:
    assert [seconds(text) for text in ("1 second", "2 minutes", "3  hours", "1 day", "1 week")] == [
        1,
        120,
        10_800,
        86_400,
        604_800,
    ]


def test_one_broker_of_a_list_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        check_reachable(f"127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(PipelineError, match=f"No broker responds .*127.0.0.1:{port}: Connection refused"):
        check_reachable(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("x.UnknownTopicOrPartitionException: This server", "does not exist"),
        ("[STREAM_FAILED] ...\nKAFKA_DATA_LOSS.X", "needs are gone"),
        ("Failed to find data source: kafka. Please", "no Kafka connector"),
        ("unresolved dependency: org.apache.spark", "could not download"),
        ("TimeoutException: Timed out waiting for a node assignment. Call: describeTopics", "does not respond"),
        ("KafkaError{code=INVALID_TRANSACTION_TIMEOUT,val=50", "no transaction of ten minutes"),
        (
            ": x.ParentNotDirectoryException: Parent path is not a directory: file:/a/file\n\tat",
            "/a/file cannot be made",
        ),
        (
            "java.io.IOException: Mkdirs failed to create file:/proc/x/batch=0/_temporary/0/y (exists",
            "/proc/x/batch=0 can",
        ),
        ("x.FileNotFoundException: /data/a (Permission denied)", "may not be written"),
        ("java.io.IOException: No space left on device", "disk is full"),
        ('UnsupportedFileSystemException: No FileSystem for scheme "foo"', "no file system 'foo'"),
        (
            "ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            "no file system 'S3AFileSystem'",
        ),
        ("Call From vm/127.0.0.1 to names:8020 failed on connection exception: x", "at names:8020 does not respond"),
        ("java.net.UnknownHostException: names.example\n", "host names.example is not known"),
        (
            "x.ConfigException: Invalid value NOPE for configuration a\n\tat",
            "refuses a setting: Invalid value NOPE for",
        ),
        ("KafkaException: KafkaError{code=_TIMED_OUT,val=-185", "did not take the rows"),
        ("TimeoutError: 5 rows for topic x were not acknowledged within 60 s", "did not take the rows"),
        ("org.apache.spark.SparkException: Could not parse Master URL: 'local[x'", "'local[x' is no Spark"),
        ("An error occurred while calling o1.x.\n: java.lang.RuntimeException: why not\n\tat x", "why not"),
        ("[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: because", "because"),
        ("\n something else\n at x.Y", "something else"),
        ("", "Spark failed."),
    ],
)
def test_the_text_of_a_spark_error_becomes_a_cause(said: str, cause: str) -> None:
    assert cause in explain(said).cause
    assert explain(said).exit_code == 1


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            "Error: Master must either be yarn or start with spark\n[JAVA_GATEWAY_EXITED] Java gateway",
            "start: Master must",
        ),
        (
            'noise\nException in thread "main" org.x.SparkException: no HADOOP_CONF_DIR\n\tat x',
            "start: no HADOOP_CONF_DIR",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "start: [JAVA_GATEWAY_EXITED]"),
        (":: unresolved dependency: a#b;1: not found\n[JAVA_GATEWAY_EXITED]", "could not download"),
    ],
)
def test_why_spark_did_not_start_is_in_what_it_wrote(said: str, cause: str) -> None:
    assert cause in not_started(said).cause
    assert not not_started(said).is_unknown
