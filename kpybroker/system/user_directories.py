"""Where a system keeps what belongs to a user: data, and configuration."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def data_directory(environment: Mapping[str, str]) -> Path:
    """Ours for a user's data: durable, and independent of the working directory. RuntimeError without a home."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kpybroker"
    if sys.platform == "win32":
        given = environment.get("LOCALAPPDATA")
        return (Path(given) if given else Path.home() / "AppData" / "Local") / "kpybroker"
    given = environment.get("XDG_DATA_HOME")
    return (Path(given) if given else Path.home() / ".local" / "share") / "kpybroker"


def config_directory(environment: Mapping[str, str]) -> Path:
    """Ours for a user's configuration: XDG_CONFIG_HOME's, Windows' APPDATA's, or ~/.config. RuntimeError without a
    home.
    """
    given = environment.get("APPDATA" if sys.platform == "win32" else "XDG_CONFIG_HOME")
    return (Path(given) if given else Path.home() / ".config") / "kpybroker"
