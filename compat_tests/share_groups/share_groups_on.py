"""A broker that serves share groups (KIP-932), which no build supports yet: for tests, until it is in the tables."""

from __future__ import annotations

import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from kpybroker.broker.requests.served import apis
from kpybroker.cli.main import main
from kpybroker.config import replication_factors
from kpybroker.core import features
from kpybroker.core.features import SHARE_VERSION, Feature, Level, VersionRange
from kpybroker.wire.api import API_INFO, ApiKey

ROOT = Path(__file__).resolve().parents[2]
SHARE_APIS = (
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)


def turn_on() -> None:
    """In this process, before a broker starts: everything that share groups need is listed, and the level supported."""
    apis.SERVED.update({key: API_INFO[key].valid_versions for key in SHARE_APIS})
    apis.REFUSED = frozenset()
    replication_factors.COUNTS_OF_BROKERS += (  # type: ignore[misc, assignment]
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    )
    levels = (Level("no share groups", "4.1"), Level("share groups (KIP-932)", "4.1"))
    features.FEATURES = (*features.FEATURES, Feature(SHARE_VERSION, levels))  # type: ignore[misc, assignment]
    features.SUPPORTED = MappingProxyType(  # type: ignore[misc]
        {**features.SUPPORTED, SHARE_VERSION: VersionRange(0, 1)}
    )


def use(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Brokers that a test starts from now on are such ones."""
    program = directory / "kpybroker-with-share-groups"
    program.write_text(
        f"#!{sys.executable}\n"
        f"import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from compat_tests.share_groups.share_groups_on import run\n"
        "run()\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("KPYBROKER", str(program))


def run() -> None:
    """The command `kpybroker`."""
    turn_on()
    main()
