"""The commands that `dev` can start next to its brokers."""

from __future__ import annotations

from typing import Final

from kpybroker.cli.children.child import Wish
from kpybroker.cli.registry.command import PACKAGES
from kpybroker.client.commands.options import EXTRA

CONSOLE: Final = Wish(
    "console", ("confluent_kafka", *(name for name, extra in EXTRA.items() if extra == "console")), "--allow-changes"
)
REGISTRY: Final = Wish("registry", PACKAGES, "--log-level", "WARNING")
