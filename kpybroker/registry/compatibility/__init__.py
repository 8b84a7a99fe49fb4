"""Compatibility: what data of one schema cannot be read with another. Pure functions, one module a type.

`check.check` is the way in: it knows which earlier versions are compared, and in which direction. Each type's
`differences(reader, writer)` returns the reasons why the reader cannot read the writer's data; none is compatible.

The rules are those of Confluent's registry, which are Avro's own for Avro, and a list of allowed changes for JSON
Schema and Protobuf. What never lives here: the state, I/O.
"""
