"""Where a user's files are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kpybroker.system.user_directories import config_directory, data_directory

pytestmark = pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="XDG directories are for other systems")


def test_data_and_configuration_are_kept_where_the_system_keeps_a_users() -> None:
    assert data_directory({"XDG_DATA_HOME": "/data"}) == Path("/data/kpybroker")
    assert data_directory({}) == Path.home() / ".local" / "share" / "kpybroker"
    assert config_directory({"XDG_CONFIG_HOME": "/config"}) == Path("/config/kpybroker")
    assert config_directory({}) == Path.home() / ".config" / "kpybroker"
