"""Why a broker cannot start, or cannot go on, and the exit code of its process."""

from __future__ import annotations

EXIT_CONFIG = 2
EXIT_STORAGE = 3
EXIT_LOCKED = 4
EXIT_PORT = 5
EXIT_COORDINATION = 6
EXIT_IDENTITY = 7


class StartupError(Exception):
    """The cause in one line, its fix in another, and one of the exit codes above."""

    def __init__(self, cause: str, fix: str, exit_code: int) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code
