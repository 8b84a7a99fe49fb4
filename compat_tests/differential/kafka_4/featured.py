"""A broker whose `group.version` is finalized: `python -m compat_tests.differential.kafka_4.featured server FILE`.

It is the plain program once that supports the feature by itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from kpybroker.core import features
from kpybroker.core.features import GROUP_VERSION, SUPPORTED, VersionRange

ROOT = Path(__file__).parents[3]


def featured(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The command that starts a broker, with the feature; and the environment that it needs."""
    if GROUP_VERSION in SUPPORTED or "KPYBROKER" in os.environ:
        return list(command), {}
    return [sys.executable, "-m", __name__, *command[1:]], {"PYTHONPATH": str(ROOT)}


def main() -> None:
    """Before anything else of the broker is imported: its modules take the table as it is then."""
    features.SUPPORTED = MappingProxyType({GROUP_VERSION: VersionRange(0, 1)})  # type: ignore[misc]
    from kpybroker.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
