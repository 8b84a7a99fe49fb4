"""The pages: one module a subject, from a request to a response. `routes` lists them all.

What never lives here: a call of confluent-kafka (`queries`), a check of a session (`web`).
"""
