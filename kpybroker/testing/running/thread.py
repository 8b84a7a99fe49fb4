"""Brokers in a thread of this process: no signal handling, no settings of the interpreter, an event loop of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.testing.errors import BrokerGone, StartError, TestingError
from kpybroker.testing.running.words import as_python

if TYPE_CHECKING:
    import trio

    from kpybroker.control.development.security import SecurityOptions

STOP_S_MAX = 30.0
LOGGERS = ("kafka", "kpybroker", "state.change.logger")
"""What the broker logs by; the program's own loggers are left alone."""

Address = tuple[str, int]


class Thread:
    """See `kpybroker.testing.running.launch`."""

    def __init__(
        self,
        brokers: int,
        keys: Mapping[str, str],
        listen_at: Address,
        directory: str,
        is_kept: bool,
        security: SecurityOptions | None = None,
    ) -> None:
        self._brokers = brokers
        self._keys = keys
        self._listen_at = listen_at
        self._security = security
        self._directory = directory
        self._is_kept = is_kept
        self._started: queue.SimpleQueue[Address | BaseException] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="kpybroker", daemon=True)
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope: trio.CancelScope | None = None
        self._is_unwanted = False
        self._failure: BaseException | None = None
        self._log: list[str] = []

    def start(self, timeout: float) -> Address:
        """As `Runner.start`."""
        self._thread.start()
        try:
            started = self._started.get(timeout=timeout)
        except queue.Empty:
            self.kill()
            raise StartError(
                f"the broker was not ready within {timeout:g} s", "give it more time with start_timeout="
            ) from None
        if isinstance(started, BaseException):
            raise _start_error(started) from started
        return started

    def end(self) -> None:
        """As `Runner.end`."""
        self._thread.join(STOP_S_MAX)
        self.kill()

    def kill(self) -> None:
        """As `Runner.kill`: a thread can only be asked to end."""
        import trio

        self._is_unwanted = True  # if the loop has not begun yet
        if self._token is not None and self._scope is not None:
            try:
                self._token.run_sync_soon(self._scope.cancel)
            except trio.RunFinishedError:
                pass
        if self._thread.ident is not None:
            self._thread.join(STOP_S_MAX)

    def why_gone(self) -> TestingError | None:
        """As `Runner.why_gone`."""
        if self._thread.is_alive():
            return None
        cause = "the broker has been stopped" if self._failure is None else f"the broker failed: {self._failure!r}"
        return BrokerGone(cause, "start it again")

    def log(self) -> str:
        """As `Runner.log`."""
        return "\n".join(self._log)

    # --- in the thread

    def _run(self) -> None:
        import trio

        try:
            if self._is_kept:
                trio.run(self._serve, Path(self._directory))
            else:
                from kpybroker.control.process.ephemeral import ephemeral_directory

                with ephemeral_directory(self._directory) as directory:
                    trio.run(self._serve, Path(directory) / "data")
        except BaseException as error:
            self._failure = error
            self._started.put(error)

    async def _serve(self, directory: Path) -> None:
        import trio

        from kpybroker.broker.cluster import loggers
        from kpybroker.control.development.plans import development_plans
        from kpybroker.control.development.security import SecurityOptions
        from kpybroker.control.hosted import Hosted
        from kpybroker.control.log_ring import LogRing
        from kpybroker.control.start import open_channel

        security = self._security or SecurityOptions(), None if self._is_kept else self._directory
        plans = development_plans(self._keys, self._brokers, self._listen_at, directory, security)
        hosted = Hosted(plans, directory)
        ring = hosted.part(LogRing)
        ring.only_of_thread(threading.get_ident())
        try:
            async with trio.open_nursery() as nursery:
                self._token, self._scope = trio.lowlevel.current_trio_token(), nursery.cancel_scope
                if self._is_unwanted:
                    nursery.cancel_scope.cancel()
                address = await nursery.start(open_channel, hosted, 0, LOGGERS)

                async def ready() -> None:
                    self._started.put(address)

                await hosted.run(ready)
                nursery.cancel_scope.cancel()
        finally:
            self._log = ring.last(200)
            loggers.put_back()


def _start_error(error: BaseException) -> StartError:
    """The cause and fix of the broker, or what it failed with."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    from kpybroker.config.fix import fix_for
    from kpybroker.config.values import ConfigError

    if isinstance(error, ConfigError):
        return StartError(as_python(str(error)), as_python(fix_for(error)))
    cause, fix = getattr(error, "cause", None), getattr(error, "fix", None)
    if isinstance(cause, str) and isinstance(fix, str):
        return StartError(as_python(cause), as_python(fix))
    return StartError(f"the broker did not start: {error!r}", "see the traceback of the cause")
