"""The topic `_schemas`: its records, the state that they add up to, and the topic itself.

`records` and `state` do no I/O: bytes in, state out. `log` reads and writes the topic through librdkafka. A request
never changes the state: it writes records, and the state changes when they are read back, on every instance alike.
"""
