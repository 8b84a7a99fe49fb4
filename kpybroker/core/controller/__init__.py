"""The controller: which replica leads each partition, and what each broker must know.

Kafka's ZooKeeper-mode `KafkaController` as a state machine without I/O. `Controller.procedure(event)` (see `machine`)
is a generator that yields effects (`effects`: tree reads, writes, requests to brokers, log lines) and is sent their
results. The shell (`kpybroker.broker.cluster.controller`) runs one procedure at a time, as Kafka's controller thread
does, so a procedure may hold any half-changed state between its own yields.

Rules. Every write goes out as a multi that checks `/controller_epoch`; one refused check ends the procedure with
`ControllerMoved` and the controller resigns. State in memory (`context`) changes only inside a procedure. Requests to
brokers are collected per transition (`requests`) and are never awaited: their responses arrive as events.

Not here: placement of replicas and validation of topics (`core.placement`, `broker.topics`), which write
`/brokers/topics/<t>` and `/admin/delete_topics/<t>` as any broker or tool may; the controller reacts to the znodes.
"""
