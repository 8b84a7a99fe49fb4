"""The operating system: everything that Linux, macOS and Windows do differently, and nothing else.

What a system does not have is found out once, when a module of this package is imported, and has a plain path where it
is used. `KPYBROKER_PORTABLE=1` in the environment makes Linux behave as if it had only what every system has, so that
tests run the plain paths: *portable mode*. Here, and only here, is code that such a test cannot reach: what is under
`sys.platform == "win32"` or `"darwin"`. docs/reference/operating-systems.md says what the plain paths lack.
"""

from __future__ import annotations

import os
from typing import Any, Final

IS_PORTABLE: Final = os.environ.get("KPYBROKER_PORTABLE") == "1"
"""Whether only what every system has is used, on Linux too."""


def of_the_system(module: Any, name: str) -> Any:
    """What not every system has; None where it is missing, also in portable mode: there a call of it must fail."""
    return None if IS_PORTABLE else getattr(module, name, None)
