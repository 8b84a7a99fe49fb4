"""What pages ask the cluster: one module a subject, functions of a `Cluster` that return rows.

They are synchronous and run in threads; each states its limits. What never lives here: HTTP, HTML.
"""
