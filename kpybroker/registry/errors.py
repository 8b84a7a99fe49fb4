"""`RegistryError`: a refused request, with Confluent's error code. The HTTP status is its first three digits."""

from __future__ import annotations

from typing import Final

SUBJECT_NOT_FOUND: Final = 40401
VERSION_NOT_FOUND: Final = 40402
SCHEMA_NOT_FOUND: Final = 40403
SUBJECT_SOFT_DELETED: Final = 40404
SUBJECT_NOT_SOFT_DELETED: Final = 40405
VERSION_SOFT_DELETED: Final = 40406
VERSION_NOT_SOFT_DELETED: Final = 40407
SUBJECT_CONFIG_NOT_FOUND: Final = 40408
SUBJECT_MODE_NOT_FOUND: Final = 40409
INCOMPATIBLE_SCHEMA: Final = 409
INVALID_SCHEMA: Final = 42201
INVALID_VERSION: Final = 42202
INVALID_COMPATIBILITY_LEVEL: Final = 42203
INVALID_MODE: Final = 42204
OPERATION_NOT_PERMITTED: Final = 42205
REFERENCE_EXISTS: Final = 42206
ID_DOES_NOT_MATCH: Final = 42207
INVALID_SUBJECT: Final = 42208
SCHEMA_TOO_LARGE: Final = 42209
CONTEXT_NOT_EMPTY: Final = 42211
STORE_ERROR: Final = 50001
TIMED_OUT: Final = 50002
FORWARDING_FAILED: Final = 50003
NO_LEADER: Final = 50004


class RegistryError(Exception):
    """Ends a request. `code` is one of those above, or an HTTP status; `message` is for the client."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code if self.code < 1000 else int(str(self.code)[:3])


def invalid_schema(why: str) -> RegistryError:
    """A text that is no schema of its type."""
    return RegistryError(INVALID_SCHEMA, f"Invalid schema: {why}")


def subject_not_found(subject: str) -> RegistryError:
    """No version is registered under this subject, or none that is not deleted."""
    return RegistryError(SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    """The subject has no such version."""
    return RegistryError(VERSION_NOT_FOUND, f"Version {version} not found.")


def schema_not_found(number: int | str | None = None) -> RegistryError:
    """No schema has this id, or the schema is not registered under the subject."""
    return RegistryError(SCHEMA_NOT_FOUND, "Schema not found" if number is None else f"Schema {number} not found")


def reference_exists(subject: str, version: int) -> RegistryError:
    """Another schema refers to a version, which is named as its key in the topic."""
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(REFERENCE_EXISTS, f"One or more references exist to the schema {key}.")


def not_permitted(why: str) -> RegistryError:
    """The mode of the subject or of the registry forbids this."""
    return RegistryError(OPERATION_NOT_PERMITTED, why)
