"""Share groups at the leaders of their partitions (KIP-932): the shell of `core.share`.

`share_partitions.SharePartitions` has what each group holds of each partition that this broker leads, and the sessions
of its members; `share_fetches` reads and waits. Requests and responses are the handlers'. Never here: members and
assignments (the group coordinator), the state topic (the share coordinator, which is reached by a `SharePersister`).
"""
