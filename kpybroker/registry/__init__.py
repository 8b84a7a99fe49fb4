"""`kpybroker registry`: a schema registry for a cluster, ours or any other Kafka.

A process of its own, and a client like any other: schemas are records of the compacted topic `_schemas`, in the format
of Confluent's registry, and the REST interface is Confluent's too. `serve.serve` runs it, and `api.app.make_app` makes
the application.

- `schemas`: a schema of each type from its text to a value, and its canonical text.
- `compatibility`: pure functions from two schemas to what would break.
- `store`: records of `_schemas`, the state that they add up to, and the topic itself.
- `rules`: what a request changes: from the state to a plan of records, without I/O.
- `api`: routes, errors with their codes, who may come in.
- `election`: which of several instances writes.

What never lives here: code of a broker, serializers (they are the clients'), rules that are run on data.
"""
