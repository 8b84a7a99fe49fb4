"""Spark jobs over the topics of a broker: website activity and log lines, counted in event time.

    python -m kpybroker.pipelines --bootstrap-servers HOST:PORT --topic access-log --format access --to-topics site ...
    python -m kpybroker.pipelines.demo --log /var/log/dpkg.log

`formats` turns a line into an event, `activity` turns events into results, `sinks` writes them, `job` runs all of it,
`options` is the command line. Start from `job.run`. Needs the extra `spark`; the demo needs `tools` too.

Never here: anything of the broker. This is a client like any other and works with any Kafka.
"""
