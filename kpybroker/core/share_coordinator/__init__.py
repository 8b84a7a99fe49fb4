"""The rules of the share coordinator (KIP-932), which keeps the state of share partitions in `__share_group_state`.

Lives here: the state machine of one partition of that topic, its records, what share partitions and share groups ask of
it. Never here: which records a member has acquired, what a share group is, how a coordinator is found.

The way in: `machine.ShareCoordinatorMachine` for the coordinator, `values.SharePersister` for its users.
"""
