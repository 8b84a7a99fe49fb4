"""Reading of `server.properties` files, in Java's format."""

from __future__ import annotations

from pathlib import Path


class UnreadableFile(Exception):
    """The file cannot be read or is not in Java's format."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}")
        self.path = path
        self.reason = reason


def load_properties(path: str) -> dict[str, str]:
    """Keys and values; the last of repeated keys wins, as in `java.util.Properties`. Raises `UnreadableFile`."""
    import javaproperties

    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise UnreadableFile(path, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise UnreadableFile(path, f"it is not UTF-8 text (byte {error.start})") from None
    try:
        loaded = javaproperties.loads(text)
    except (ValueError, javaproperties.InvalidUEscapeError) as error:
        raise UnreadableFile(path, str(error)) from None
    # Kafka trims values when it parses them; names are not trimmed.
    return {str(key): str(value).strip() for key, value in loaded.items()}
