"""A cluster through our own connections: what `connect.admin.Cluster` offers, without librdkafka's admin client.

librdkafka 2.16 ends its process where two admin calls wait for the same slow Metadata response (an assertion on the
reference count of the call, ``rd_kafka_enq_once_del_source_return``). A process that serves many readers cannot have
that. `cluster.DirectCluster` has the calls that the console makes, so every function that takes a `Cluster` takes it.

What never lives here: rows and tables, which are `actions`; reading and producing records.
"""
