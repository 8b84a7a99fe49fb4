"""Opens the channel for the brokers of a process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.lifecycle.errors import EXIT_PORT, StartupError
from kpybroker.control.catalogue import all_methods
from kpybroker.control.levers.leadership import undo_all
from kpybroker.control.levers.movable_clock import MovableClock
from kpybroker.control.levers.topology import Topology
from kpybroker.control.log_ring import LogRing
from kpybroker.control.seams import remove_all_faults, seams_of
from kpybroker.control.server import HOST, ControlServer

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted


def equip(hosted: Hosted) -> None:
    """Give the brokers, which are not started yet, what the methods move."""
    hosted.is_controlled = True
    hosted.clock = MovableClock()
    hosted.part(Topology).install(hosted)
    hosted.on_reset(partial(undo_all, hosted))
    hosted.on_reset(partial(remove_all_faults, hosted))
    hosted.seams_of = partial(seams_of, hosted)


async def open_channel(
    hosted: Hosted, port: int, loggers: Sequence[str] = ("",), *, task_status: trio.TaskStatus[tuple[str, int]]
) -> None:
    """Serve the channel until cancelled; the started value is its address. Raises StartupError.

    To be started before `hosted.run`, so that every broker has its seams. What `loggers` log is kept for `log`; ""
    is the root logger.
    """
    equip(hosted)
    server = ControlServer(hosted, all_methods())
    try:
        address = server.listen(port)
    except OSError as error:
        raise StartupError(
            f"the control channel cannot be opened at {HOST}:{port}: {error.strerror or error}",
            "choose another port with --control PORT, 0 for a free one",
            EXIT_PORT,
        ) from error
    ring = hosted.part(LogRing)
    for name in loggers:
        logging.getLogger(name).addHandler(ring)
    try:
        task_status.started(address)
        await server.serve()
    finally:
        for name in loggers:
            logging.getLogger(name).removeHandler(ring)
        server.close()
