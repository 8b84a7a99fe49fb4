"""Python imports this at its start where PYTHONPATH names this folder: brokers in processes of their own get the rules.

`make compat-portable` does so.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("KPYBROKER_PORTABLE") == "1":
    sys.path.insert(0, os.path.dirname(__file__))
    from rules import enforce  # type: ignore[import-not-found]

    sys.path.pop(0)
    enforce()
