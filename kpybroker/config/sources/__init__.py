"""Readers of what a user wrote: `properties` files, `environment` variables, `jaas` login files.

Never here: what a key means. Each module is a way in of its own and returns plain dictionaries, for `config.interpret`.
"""
