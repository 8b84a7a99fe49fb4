"""Spark jobs over the topics of a broker. Each pipeline has a folder; start from `catalogue`.

    python -m kpybroker.pipelines run activity --bootstrap-servers HOST:PORT --input access-log --format access ...
    python -m kpybroker.pipelines demo activity --log /var/log/dpkg.log

`runtime` is what all share: options, checkpoint, outputs, the run. `demo` is what their demos share. Needs the extra
`spark`.

Never here: anything of the broker. This is a client like any other and works with any Kafka.
"""
