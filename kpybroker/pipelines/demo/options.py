"""The options that every demo has."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def demo_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """The command line of the demo `name`: the broker that it starts, and Spark's connector."""
    parser = argparse.ArgumentParser(
        prog=f"python -m kpybroker.pipelines demo {name}", description=(description or "").split("\n", 1)[0]
    )
    default_command = Path(sys.executable).with_name("kpybroker")
    parser.add_argument("--kpybroker", default=str(default_command), metavar="COMMAND", help="the broker to start")
    parser.add_argument("--jars", metavar="DIR", help="Spark's Kafka connector (default: from Maven)")
    parser.add_argument("--picture", metavar="FILE", help="draw the results too: .svg or .png")
    return parser
