"""Spark jobs over what is in a broker's topics: website activity and log lines, counted in event time.

    python -m kpybroker.pipelines --bootstrap-servers HOST:PORT --topic access-log --format access --to-topics site ...
    python -m kpybroker.pipelines.demo --log /var/log/dpkg.log

`formats` turns a line into an event, `activity` turns events into results, `sinks` keeps them, `job` runs it all,
`options` is the command line. A client like any other: it imports nothing of the broker and works against any Kafka.
Needs the extra `spark`; the demo needs `tools` too.
"""
