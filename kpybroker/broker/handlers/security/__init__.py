"""Requests about access: ACLs, logins, credentials, tokens and client quotas.

Never here: the rules themselves (`kpybroker.core.security`) and their shells (`broker.security`). The way in is
`handlers.routes`.
"""
