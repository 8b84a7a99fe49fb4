"""Requests of transactional producers, and of those who look at transactions.

Never here: the state of a transaction, which is `core.transaction` behind `broker.coordinators`. The way in is
`handlers.routes`.
"""
