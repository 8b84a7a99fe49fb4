"""What `kpybroker.testing` raises. Each text has the cause, and on a second line the fix."""

from __future__ import annotations


class TestingError(Exception):
    """The base of all; itself where none of the others fits, as for a failure inside the broker."""

    __test__ = False  # pytest: this is no class of tests

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(f"{cause}\nfix: {fix}")
        self.cause = cause
        self.fix = fix


class StartError(TestingError):
    """A broker did not start."""


class UsageError(TestingError):
    """A call that cannot work: an unknown key, a fault on an API that does not exist, a second start."""


class NotThere(UsageError, AssertionError):
    """A group that does not exist, a partition without a leader: `wait_for` goes on waiting until there is one."""


class UnusedFault(TestingError):
    """A fault has ended that never acted: the test has not seen what it was made for."""


class UnusedFaultWarning(UserWarning):
    """The same, where it is to be no more than a warning."""


class WaitTimeout(TestingError):
    """What was waited for did not happen; the text says what was there instead."""


class BrokerGone(TestingError):
    """The broker's process has ended, or is not started."""
