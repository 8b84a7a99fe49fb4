"""Replication's decisions: the leader's view of its replicas, the follower's next step, and fetch sessions (KIP-227).

A leader starts from `replica.LeaderState`, a follower from `follower.FetchState`; `fetch_session` is the responding
side of a session, `follower_session` the asking one. Never here: logs, connections, or which broker leads
(`core.controller`).
"""
