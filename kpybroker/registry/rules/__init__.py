"""What a request means: from the state to a result, or to a `Change` of records to write and the result after that.

Nothing here does I/O or changes the state. `api` calls it, under the lock of the store. Refusals are `RegistryError`.
"""
