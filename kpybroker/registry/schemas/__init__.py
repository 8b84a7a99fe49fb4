"""Schemas: from a text to a value that can be compared, and back to the canonical text.

Texts come from anyone: each parser bounds depth and size, and raises `RegistryError` 42201 for what is not a schema.
`parse.parse` is the way in. What never lives here: the state, versions, subjects.
"""
