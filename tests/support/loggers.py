"""Logging is one for the process: what a test sets up must not reach the next."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_logging() -> Iterator[None]:
    """Put the handlers and levels of every logger back, and close the handlers that were added."""
    before = {logger: (logger.handlers[:], logger.level) for logger in _loggers()}
    raises = logging.raiseExceptions
    try:
        yield
    finally:
        for logger in _loggers():
            handlers, level = before.get(logger, ([], logging.NOTSET))
            for handler in logger.handlers:
                if handler not in handlers:
                    handler.close()
            logger.handlers[:] = handlers
            logger.setLevel(level)
        logging.raiseExceptions = raises


def _loggers() -> list[logging.Logger]:
    """All that there are. Some are only made by a setting."""
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in known if isinstance(logger, logging.Logger))]
