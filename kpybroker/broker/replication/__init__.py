"""Replicas: the partitions hosted here, how a leader replicates them, and how a follower fetches them.

Lives here: `Partition` (one partition's log, leadership and waiting requests), `Replicas` (all of them, and the
controller's orders), `FetchService` (serving Fetch), the followers' fetchers, ISR changes, moves between log
directories, throttled replication.

Never here: the rules themselves (`core.replication`), files (`storage`), the shapes of client requests (`handlers`),
anything about groups or transactions.

The way in: `replicas.Replicas`, and `fetch_service.FetchService` for reading.
"""
