"""Readers of what a user wrote: `properties` files, `environment` variables, `jaas` login files, `kraft` files.

Never here: what a key means. Each module is a way in of its own and gives plain dictionaries to `config.interpret`.
"""
