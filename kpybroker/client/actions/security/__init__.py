"""Who may do what, and how much: ACLs, users with SCRAM credentials, quotas.

Each module is what one group of commands does. What never lives here: how a command itself logs in (`connect`).
"""
