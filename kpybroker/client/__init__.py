"""The commands that talk to a cluster, ours or any other Kafka: `topic`, `group`, `config`, `cluster` and so on.

They are clients: confluent-kafka does the work, and single requests that it does not offer go through
`connect.wire`. What never lives here: anything of a broker. `commands` declares the command line and imports nothing
but click; a command imports its action when it runs, so that `kpybroker --version` stays fast and works without the
extra `tools`.

From top to bottom: `commands` (options), `transfer` (copies of offsets and records), `actions`, `doctor` and `metrics`
(what the other commands do), `records` (formats of records, offsets), `show` (tables, JSON, YAML), `connect`
(configuration, connections, errors).
"""
